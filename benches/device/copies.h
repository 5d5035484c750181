// Callbacks: what is done in a stream, which is copies, fills and calls of the host.

#pragma once

#include <cstdint>
#include <cstring>
#include <mutex>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/tf_status.h"

#include "blocks.h"
#include "state.h"
#include "status.h"

namespace {

// ---- Callbacks: copies and fills ------------------------------------------------------------------

Status NoHostMemory() { return Invalid("TensorFlow passed no memory of the host's"); }

Status ToHost(Memory& memory, void* target, uint64_t source, uint64_t size) {
  const char* from = memory.Part(source, size);
  if (from == nullptr) return Outside();
  std::memcpy(target, from, size);
  return {};
}

Status ToDevice(Memory& memory, uint64_t target, const void* source, uint64_t size) {
  char* to = memory.Part(target, size);
  if (to == nullptr) return Outside();
  std::memcpy(to, source, size);
  return {};
}

Status OnDevice(Memory& memory, uint64_t target, uint64_t source, uint64_t size) {
  char* to = memory.Part(target, size);
  const char* from = memory.Part(source, size);
  if (to == nullptr || from == nullptr) return Outside();
  std::memmove(to, from, size);
  return {};
}

void MemcpyDToH(const SP_Device* handle, SP_Stream stream, void* target,
                const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  Run(status, [&]() -> Status {
    Device* device = DeviceOf(handle);
    if (device == nullptr) return NoDevice();
    // Nobody looks behind this copy: an error prevents wrong numbers.
    Status healthy = device->health.Check();
    if (!healthy.ok()) return healthy;
    if (stream == nullptr) return Null("stream");
    if (size == 0) return {};
    const uint64_t from = AddressOf(source);
    Status checked = CheckAddress(from);
    if (!checked.ok()) return checked;
    if (target == nullptr) return NoHostMemory();
    return Work(*device, *stream,
                [&](Memory& memory) { return ToHost(memory, target, from, size); });
  });
}

void MemcpyHToD(const SP_Device* handle, SP_Stream stream, SP_DeviceMemoryBase* target,
                const void* source, uint64_t size, TF_Status* status) {
  Run(status, [&]() -> Status {
    return Enqueue(handle, stream, [&](Device& device) -> Status {
      if (size == 0) return {};
      const uint64_t to = AddressOf(target);
      Status checked = CheckAddress(to);
      if (!checked.ok()) return checked;
      if (source == nullptr) return NoHostMemory();
      return Work(device, *stream,
                  [&](Memory& memory) { return ToDevice(memory, to, source, size); });
    });
  });
}

void MemcpyDToD(const SP_Device* handle, SP_Stream stream, SP_DeviceMemoryBase* target,
                const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  Run(status, [&]() -> Status {
    return Enqueue(handle, stream, [&](Device& device) -> Status {
      if (size == 0) return {};
      const uint64_t to = AddressOf(target);
      const uint64_t from = AddressOf(source);
      Status checked = CheckAddress(to);
      if (checked.ok()) checked = CheckAddress(from);
      if (!checked.ok()) return checked;
      return Work(device, *stream,
                  [&](Memory& memory) { return OnDevice(memory, to, from, size); });
    });
  });
}

// Copies outside of any stream.
template <typename Body>
void Sync(const SP_Device* handle, uint64_t size, TF_Status* status, Body body) {
  Run(status, [&]() -> Status {
    Device* device = DeviceOf(handle);
    if (device == nullptr) return NoDevice();
    if (size == 0) return {};
    const std::lock_guard<std::mutex> lock(device->memory.mutex);
    return body(device->memory);
  });
}

void SyncMemcpyDToH(const SP_Device* handle, void* target, const SP_DeviceMemoryBase* source,
                    uint64_t size, TF_Status* status) {
  Sync(handle, size, status, [&](Memory& memory) -> Status {
    const uint64_t from = AddressOf(source);
    Status checked = CheckAddress(from);
    if (!checked.ok()) return checked;
    return target == nullptr ? NoHostMemory() : ToHost(memory, target, from, size);
  });
}

void SyncMemcpyHToD(const SP_Device* handle, SP_DeviceMemoryBase* target, const void* source,
                    uint64_t size, TF_Status* status) {
  Sync(handle, size, status, [&](Memory& memory) -> Status {
    const uint64_t to = AddressOf(target);
    Status checked = CheckAddress(to);
    if (!checked.ok()) return checked;
    return source == nullptr ? NoHostMemory() : ToDevice(memory, to, source, size);
  });
}

void SyncMemcpyDToD(const SP_Device* handle, SP_DeviceMemoryBase* target,
                    const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  Sync(handle, size, status, [&](Memory& memory) -> Status {
    const uint64_t to = AddressOf(target);
    const uint64_t from = AddressOf(source);
    Status checked = CheckAddress(to);
    if (checked.ok()) checked = CheckAddress(from);
    return checked.ok() ? OnDevice(memory, to, from, size) : checked;
  });
}

template <typename Body>
void Fill(const SP_Device* handle, SP_Stream stream, SP_DeviceMemoryBase* target, uint64_t size,
          TF_Status* status, Body body) {
  Run(status, [&]() -> Status {
    return Enqueue(handle, stream, [&](Device& device) -> Status {
      if (size == 0) return {};
      const uint64_t to = AddressOf(target);
      Status checked = CheckAddress(to);
      if (!checked.ok()) return checked;
      return Work(device, *stream, [&](Memory& memory) -> Status {
        char* part = memory.Part(to, size);
        if (part == nullptr) return Outside();
        body(part);
        return {};
      });
    });
  });
}

void MemZero(const SP_Device* handle, SP_Stream stream, SP_DeviceMemoryBase* target, uint64_t size,
             TF_Status* status) {
  Fill(handle, stream, target, size, status, [&](char* part) { std::memset(part, 0, size); });
}

void Memset(const SP_Device* handle, SP_Stream stream, SP_DeviceMemoryBase* target, uint8_t pattern,
            uint64_t size, TF_Status* status) {
  Fill(handle, stream, target, size, status, [&](char* part) { std::memset(part, pattern, size); });
}

void Memset32(const SP_Device* handle, SP_Stream stream, SP_DeviceMemoryBase* target,
              uint32_t pattern, uint64_t size, TF_Status* status) {
  Fill(handle, stream, target, size, status, [&](char* part) {
    for (uint64_t at = 0; at + sizeof pattern <= size; at += sizeof pattern) {
      std::memcpy(part + at, &pattern, sizeof pattern);
    }
  });
}

// ---- Callbacks: host callbacks --------------------------------------------------------------------

TF_Bool HostCallback(const SP_Device*, SP_Stream stream, SE_StatusCallbackFn function,
                     void* argument) {
  if (function == nullptr) return 0;
  return RunQuiet<TF_Bool>(1, [&]() -> TF_Bool {
    TF_Status* status = TF_NewStatus();
    if (stream == nullptr) TF_SetStatus(status, TF_FAILED_PRECONDITION, "there is no stream");
    function(argument, status);
    if (stream != nullptr && TF_GetCode(status) != TF_OK) {
      stream->device->health.Note({TF_GetCode(status), TF_Message(status)});
    }
    TF_DeleteStatus(status);
    return 1;
  });
}

}  // namespace
