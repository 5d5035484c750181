// What TensorFlow's handles represent: the device, its streams and events; and how work is done in a stream.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

#include "blocks.h"
#include "status.h"

namespace {

struct Device : std::enable_shared_from_this<Device> {
  Health health;
  Memory memory;
  std::mutex blocks_mutex;
  Blocks blocks;
  std::atomic<uint64_t> refused{0};
  // Memory for small requests when there is none left; pieces is 0 before it is taken, and where there is none.
  std::once_flag set_aside;
  // Cheaper to look at than the flag.
  std::atomic<bool> is_set_aside{false};
  uint64_t reserve = 0;
  uint64_t pieces = 0;
  std::atomic<uint16_t> taken{0};
  // The reference of the host's handle.
  std::shared_ptr<Device> self;
};

// How much was done in a stream.
struct Line {
  std::atomic<uint64_t> done{0};
};

}  // namespace

// The whole plugin is one translation unit: no other one can have another idea of these.
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wsubobject-linkage"
#endif

struct SP_Stream_st {
  std::shared_ptr<Device> device;
  std::shared_ptr<Line> line;
};

struct SP_Event_st {
  std::mutex mutex;
  // Where it was recorded last; null for nowhere.
  std::shared_ptr<Line> line;
  uint64_t number = 0;
};

struct SP_Timer_st {};

namespace {

using Stream = SP_Stream_st;
using Event = SP_Event_st;

// Whether a struct covers a field.
#define COVERS(record, type, field) ((record)->struct_size >= TF_OFFSET_OF_END(type, field))

Device* DeviceOf(const SP_Device* device) {
  if (device == nullptr || !COVERS(device, SP_Device, device_handle)) return nullptr;
  return static_cast<Device*>(device->device_handle);
}

Status NoDevice() { return Null("device"); }

// The address in a struct, 0 for none.
uint64_t AddressOf(const SP_DeviceMemoryBase* memory) {
  if (memory == nullptr || !COVERS(memory, SP_DeviceMemoryBase, opaque)) return 0;
  return reinterpret_cast<uint64_t>(memory->opaque);
}

Status CheckAddress(uint64_t address) {
  if (address == 0) return Invalid("TensorFlow passed no device memory");
  return address >= kRefused ? UsedUp() : Status{};
}

// Does work of a stream, under the lock. An error, which would abort the process, is kept.
template <typename Body>
inline Status Enqueue(const SP_Device* handle, SP_Stream stream, Body body) {
  Device* device = DeviceOf(handle);
  if (device == nullptr) return NoDevice();
  try {
    Status status = stream == nullptr ? Null("stream") : body(*device);
    if (!status.ok()) device->health.Note(status);
  } catch (...) {
    device->health.Note(Current());
  }
  return {};
}

template <typename Body>
inline Status Work(Device& device, Stream& stream, Body body) {
  const std::lock_guard<std::mutex> lock(device.memory.mutex);
  Status status = body(device.memory);
  if (status.ok()) stream.line->done.fetch_add(1, std::memory_order_release);
  return status;
}

// Waits for work that has begun on another thread.
void Settle(Device& device) { const std::lock_guard<std::mutex> lock(device.memory.mutex); }

}  // namespace
