// Operations on open files.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"
#include "tensorflow/c/tf_status.h"

#include "nodes.h"
#include "status.h"

namespace {

void CleanupReader(TF_RandomAccessFile* file) {
  if (file == nullptr) return;
  delete static_cast<FilePtr*>(file->plugin_file);
  file->plugin_file = nullptr;
}

int64_t Read(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
             TF_Status* status) {
  int64_t read = -1;
  Run(status, [&]() -> Status {
    if (file == nullptr || (buffer == nullptr && n > 0)) return NullArgument();
    const auto* state = static_cast<const FilePtr*>(file->plugin_file);
    if (state == nullptr) return NotOpen();
    File& content = **state;
    const std::shared_lock<std::shared_mutex> lock(content.mutex);
    const size_t size = content.bytes.size();
    const size_t start = offset < size ? static_cast<size_t>(offset) : size;
    const size_t length = std::min(n, size - start);
    if (length > 0) std::memcpy(buffer, content.bytes.data() + start, length);
    read = static_cast<int64_t>(length);
    return length == n ? Status{} : EndOfFile();
  });
  return read;
}

void CleanupWriter(TF_WritableFile* file) {
  if (file == nullptr) return;
  delete static_cast<Writer*>(file->plugin_file);
  file->plugin_file = nullptr;
}

// Runs an operation on an open writer, which the host uses from one thread at a time.
template <typename Operation>
inline Status WithWriter(const TF_WritableFile* file, Operation operation) {
  if (file == nullptr) return NullArgument();
  auto* writer = static_cast<Writer*>(file->plugin_file);
  return writer == nullptr ? NotOpen() : operation(*writer);
}

void Append(const TF_WritableFile* file, const char* buffer, size_t n, TF_Status* status) {
  Run(status, [&]() -> Status {
    if (buffer == nullptr && n > 0) return NullArgument();
    return WithWriter(file, [&](Writer& writer) -> Status {
      if (writer.closed) return Closed();
      const std::unique_lock<std::shared_mutex> lock(writer.file->mutex);
      writer.file->bytes.append(buffer, n);
      return {};
    });
  });
}

int64_t Tell(const TF_WritableFile* file, TF_Status* status) {
  int64_t position = -1;
  Run(status, [&]() -> Status {
    return WithWriter(file, [&](Writer& writer) -> Status {
      if (writer.closed) return Closed();
      const std::shared_lock<std::shared_mutex> lock(writer.file->mutex);
      position = static_cast<int64_t>(writer.file->bytes.size());
      return {};
    });
  });
  return position;
}

void Flush(const TF_WritableFile* file, TF_Status* status) {
  Run(status, [&]() -> Status { return WithWriter(file, [](Writer&) -> Status { return {}; }); });
}

void Close(const TF_WritableFile* file, TF_Status* status) {
  Run(status, [&]() -> Status {
    return WithWriter(file, [](Writer& writer) -> Status {
      writer.closed = true;
      return {};
    });
  });
}

}  // namespace
