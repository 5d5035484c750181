// The filesystem: a map from names to files and directories.

#pragma once

#include <functional>
#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>

#ifdef MEMFS_BTREE
#include "absl/container/btree_map.h"
#endif
#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"

#include "names.h"
#include "status.h"

namespace {

struct File {
  std::shared_mutex mutex;
  std::string bytes;
};
using FilePtr = std::shared_ptr<File>;
// A directory is a null file. Roots are always there.
#ifdef MEMFS_BTREE
using Nodes = absl::btree_map<std::string, FilePtr, std::less<>>;
#else
using Nodes = std::map<std::string, FilePtr, std::less<>>;
#endif

struct MemFs {
  std::shared_mutex mutex;
  Nodes nodes;
};

struct Writer {
  FilePtr file;
  bool closed = false;
};

const FilePtr kDirectory;

// The node, or null if there is none.
const FilePtr* Find(const Nodes& nodes, const Uri& uri) {
  const auto node = nodes.find(uri.name);
  if (node != nodes.end()) return &node->second;
  return uri.IsRoot() ? &kDirectory : nullptr;
}

// Why there is no node: the nearest one above is a file, or a directory.
Status Missing(const Nodes& nodes, const Uri& uri) {
  for (Uri dir = uri; !dir.IsRoot();) {
    dir = dir.Parent();
    const auto node = nodes.find(dir.name);
    if (node == nodes.end()) continue;
    if (node->second != nullptr) return NotADirectory(uri.name);
    break;
  }
  return NotFound(uri.name);
}

Status FindFile(const Nodes& nodes, const Uri& uri, FilePtr* file) {
  const FilePtr* node = Find(nodes, uri);
  if (node == nullptr) return Missing(nodes, uri);
  if (*node == nullptr) return IsADirectory(uri.name);
  *file = *node;
  return {};
}

Status RequireDir(const Nodes& nodes, const Uri& uri) {
  const FilePtr* node = Find(nodes, uri);
  if (node == nullptr) return Missing(nodes, uri);
  return *node == nullptr ? Status{} : NotADirectory(uri.name);
}

// Calls `visit` with the name of each entry of a directory until it returns false.
template <typename Visit>
void ForEachChild(const Nodes& nodes, const Uri& dir, Visit visit) {
  std::string prefix;
  prefix.reserve(dir.name.size() + 1);
  prefix.append(dir.name);
  if (prefix.back() != '/') prefix.push_back('/');
  for (auto node = nodes.lower_bound(prefix); node != nodes.end(); ++node) {
    const std::string_view name = node->first;
    if (!StartsWith(name, prefix)) break;
    const std::string_view rest = name.substr(prefix.size());
    if (rest.find('/') == std::string_view::npos && !visit(rest)) break;
  }
}

Status Insert(Nodes* nodes, const Uri& uri, FilePtr node) {
  if (!uri.IsRoot()) {
    Status parent = RequireDir(*nodes, uri.Parent());
    if (!parent.ok()) return parent;
  }
  nodes->insert_or_assign(std::string(uri.name), std::move(node));
  return {};
}

Status Create(Nodes* nodes, const Uri& uri, FilePtr* file) {
  const FilePtr* node = Find(*nodes, uri);
  if (node != nullptr && *node == nullptr) return IsADirectory(uri.name);
  *file = std::make_shared<File>();
  return Insert(nodes, uri, *file);
}

MemFs* Of(const TF_Filesystem* filesystem) {
  return filesystem == nullptr ? nullptr : static_cast<MemFs*>(filesystem->plugin_filesystem);
}

}  // namespace
