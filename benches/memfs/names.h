// Names: the canonical URIs of paths, and what is wrong with those that the host passes.

#pragma once

#include <cstddef>
#include <cstring>
#include <string>
#include <string_view>

#include "tensorflow/c/tf_status.h"

#include "status.h"

namespace {

constexpr std::string_view kScheme = "mem";
constexpr std::string_view kPrefix = "mem://";
constexpr std::string_view kEmptyHostRoot = "mem:///";

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::memcmp(text.data(), prefix.data(), prefix.size()) == 0;
}

// A canonical name, `mem://host/path`.
struct Uri {
  std::string_view name;
  size_t path;  // Where the path begins: after the host.

  bool IsRoot() const { return name.size() <= path + 1; }

  Uri Parent() const {
    const size_t slash = name.rfind('/');
    // The root keeps its slash.
    return {name.substr(0, slash == path ? path + 1 : slash), path};
  }
};

// Length of `scheme` in `scheme://`, or 0 without one.
size_t SchemeLength(std::string_view name) {
  size_t length = 0;
  for (; length < name.size(); ++length) {
    const char c = name[length];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && (length == 0 || !((c >= '0' && c <= '9') || c == '.'))) break;
  }
  return StartsWith(name.substr(length), "://") ? length : 0;
}

size_t PathStart(std::string_view name) {
  size_t host = kPrefix.size();
  if (!StartsWith(name, kPrefix)) {
    const size_t scheme = SchemeLength(name);
    if (scheme == 0) return 0;
    host = scheme + 3;
  }
  const size_t slash = name.find('/', host);
  return slash == std::string_view::npos ? name.size() : slash;
}

bool IsCanonical(std::string_view path) {
  if (path.empty() || path.front() != '/') return false;
  if (path.size() == 1) return true;
  if (path.back() == '/') return false;
  for (size_t slash = 0; slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
    // There is a byte after each slash, since the last byte is none.
    const char first = path[slash + 1];
    if (first == '/') return false;
    if (first != '.') continue;
    const std::string_view component = path.substr(slash + 1, path.find('/', slash + 1) - slash - 1);
    if (component == "." || component == "..") return false;
  }
  return true;
}

// Drops empty and `.` components and resolves `..` without leaving the host.
std::string Canonical(std::string_view name, size_t path) {
  std::string clean(name.substr(0, path));
  clean.reserve(name.size() + 1);
  size_t start = path;
  while (start <= name.size()) {
    size_t end = name.find('/', start);
    if (end == std::string_view::npos) end = name.size();
    const std::string_view component = name.substr(start, end - start);
    if (component == "..") {
      const size_t slash = clean.rfind('/');
      clean.resize(slash == std::string::npos || slash < path ? path : slash);
    } else if (!component.empty() && component != ".") {
      clean.append(1, '/').append(component);
    }
    start = end + 1;
  }
  if (clean.size() == path) clean.push_back('/');
  return clean;
}

Status ForeignScheme(std::string_view name, std::string_view scheme) {
  std::string problem = ": this filesystem serves `mem://`, not `";
  problem.append(scheme).append("://`");
  return Fail(TF_FAILED_PRECONDITION, name, problem);
}

// Runs an operation on the path that the host passes.
template <typename Operation>
inline Status WithUri(const char* argument, Operation operation) {
  if (argument == nullptr) return NullArgument();
  std::string_view name(argument);
  if (name == "/") name = kEmptyHostRoot;
  const size_t path = PathStart(name);
  if (!StartsWith(name, kPrefix)) {
    const size_t scheme = SchemeLength(name);
    if (scheme != 0) return ForeignScheme(name, name.substr(0, scheme));
  }
  if (IsCanonical(name.substr(path))) return operation(Uri{name, path});
  const std::string clean = Canonical(name, path);
  return operation(Uri{clean, path});
}

}  // namespace
