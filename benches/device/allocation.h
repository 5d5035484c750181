// Callbacks: memory of the device and of the host, and how much of it is in use.

#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <optional>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

#include "blocks.h"
#include "state.h"
#include "status.h"

namespace {

void Give(SP_DeviceMemoryBase* memory, uint64_t address, uint64_t size) {
  if (memory == nullptr || !COVERS(memory, SP_DeviceMemoryBase, payload)) return;
  memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  memory->ext = nullptr;
  memory->opaque = reinterpret_cast<void*>(address);
  memory->size = address == 0 ? 0 : size;
  memory->payload = 0;
}

uint64_t PiecesOf(uint64_t free) { return std::min(free / kPart / kPiece, kPieces); }

void SetAside(Device& device) {
  const std::lock_guard<std::mutex> lock(device.blocks_mutex);
  const uint64_t pieces = PiecesOf(kSize - device.blocks.in_use());
  if (pieces == 0) return;
  if (const std::optional<uint64_t> at = device.blocks.Allocate(pieces * kPiece)) {
    device.reserve = kBase + *at;
    device.pieces = pieces;
  }
}

// A piece of what was set aside; 0 if none is left.
uint64_t TakePiece(Device& device, uint64_t size) {
  if (size > kPiece) return 0;
  uint16_t taken = device.taken.load();
  while (true) {
    uint64_t at = 0;
    while (at < device.pieces && (taken >> at & 1) != 0) ++at;
    if (at >= device.pieces) return 0;
    if (device.taken.compare_exchange_weak(taken, static_cast<uint16_t>(taken | 1u << at))) {
      return device.reserve + at * kPiece;
    }
  }
}

void Allocate(const SP_Device* handle, uint64_t size, int64_t, SP_DeviceMemoryBase* memory) {
  RunQuiet(0, [&] {
    Give(memory, 0, 0);
    Device* device = DeviceOf(handle);
    if (device == nullptr || size == 0) return 0;
    if (!device->is_set_aside.load(std::memory_order_acquire)) {
      std::call_once(device->set_aside, [&] {
        SetAside(*device);
        device->is_set_aside.store(true, std::memory_order_release);
      });
    }
    std::optional<uint64_t> at;
    {
      const std::lock_guard<std::mutex> lock(device->blocks_mutex);
      at = device->blocks.Allocate(size);
    }
    if (at.has_value()) {
      Give(memory, kBase + *at, size);
    } else if (const uint64_t piece = TakePiece(*device, size); piece != 0) {
      Give(memory, piece, size);
    } else if (size <= kRepeatedForEver) {
      const uint64_t number = device->refused.fetch_add(1, std::memory_order_relaxed);
      Give(memory, kRefused + (number % (1 << 24) + 1) * 4096, size);
    }
    return 0;
  });
}

void Deallocate(const SP_Device* handle, SP_DeviceMemoryBase* memory) {
  RunQuiet(0, [&] {
    Device* device = DeviceOf(handle);
    const uint64_t address = AddressOf(memory);
    if (device == nullptr || address == 0 || address >= kRefused) return 0;
    const uint64_t offset = address - device->reserve;
    if (address >= device->reserve && offset < device->pieces * kPiece) {
      device->taken.fetch_and(static_cast<uint16_t>(~(1u << (offset / kPiece))));
      return 0;
    }
    const std::lock_guard<std::mutex> lock(device->blocks_mutex);
    device->blocks.Release(address - kBase);
    return 0;
  });
}

void* HostMemoryAllocate(const SP_Device*, uint64_t size) {
  return size == 0 ? nullptr : std::aligned_alloc(64, (size + 63) / 64 * 64);
}

void HostMemoryDeallocate(const SP_Device*, void* memory) { std::free(memory); }

void* UnifiedMemoryAllocate(const SP_Device*, uint64_t) { return nullptr; }
void UnifiedMemoryDeallocate(const SP_Device*, void*) {}

TF_Bool GetAllocatorStats(const SP_Device* handle, SP_AllocatorStats* stats) {
  return RunQuiet<TF_Bool>(0, [&]() -> TF_Bool {
    Device* device = DeviceOf(handle);
    if (device == nullptr || stats == nullptr ||
        !COVERS(stats, SP_AllocatorStats, largest_free_block_bytes)) {
      return 0;
    }
    const std::lock_guard<std::mutex> lock(device->blocks_mutex);
    device->blocks.Fill(stats);
    return 1;
  });
}

TF_Bool DeviceMemoryUsage(const SP_Device* handle, int64_t* free, int64_t* total) {
  return RunQuiet<TF_Bool>(0, [&]() -> TF_Bool {
    Device* device = DeviceOf(handle);
    if (device == nullptr) return 0;
    const std::lock_guard<std::mutex> lock(device->blocks_mutex);
    uint64_t left = kSize - device->blocks.in_use();
    // What will be set aside is not the host's.
    if (!device->is_set_aside.load(std::memory_order_acquire)) left -= PiecesOf(left) * kPiece;
    if (free != nullptr) *free = static_cast<int64_t>(left);
    if (total != nullptr) *total = static_cast<int64_t>(kSize);
    return 1;
  });
}

}  // namespace
