// Memory for the host, which frees it.

#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

namespace {

void* Allocate(size_t size) { return std::malloc(size == 0 ? 1 : size); }
void Free(void* memory) { std::free(memory); }

struct FreeDeleter {
  void operator()(void* memory) const { Free(memory); }
};
using CString = std::unique_ptr<char, FreeDeleter>;

CString MakeCString(std::string_view text) {
  CString copy(static_cast<char*>(Allocate(text.size() + 1)));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy.get(), text.data(), text.size());
  copy.get()[text.size()] = '\0';
  return copy;
}

}  // namespace
