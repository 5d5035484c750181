// The device of plugin/src/lib.rs, written by hand in C++17 against TensorFlow's own headers: what the Rust
// plugin is measured against.
//
// Same design: one range of the host's memory behind a lock, whose addresses nobody can follow; work that is
// done within the call that asks for it; a stream that counts what was done in it, and an event that is such
// a count. Same behaviour towards TensorFlow, as far as this device needs it:
//
// - no callback throws, and each writes its status;
// - a field of a struct of the host's is read and written only if its `struct_size` covers it;
// - handles may be null, where an earlier `create_*` failed;
// - an error that would abort the process is kept, and reported by what TensorFlow asks later;
// - a request that TensorFlow would repeat for ever gets an address that everything else refuses.

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"

namespace {

// ---- Errors ---------------------------------------------------------------------------------------

struct Status {
  TF_Code code = TF_OK;
  std::string message;

  bool ok() const { return code == TF_OK; }
};

Status Invalid(const char* message) { return {TF_INVALID_ARGUMENT, message}; }
Status Null(const char* what) {
  return {TF_FAILED_PRECONDITION,
          std::string("TensorFlow passed no ") + what + ", because it could not be made"};
}
Status UsedUp() { return {TF_RESOURCE_EXHAUSTED, "the memory of the device is used up"}; }

Status Current() noexcept {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return {TF_RESOURCE_EXHAUSTED, "no memory"};
  } catch (const std::exception& error) {
    return {TF_INTERNAL, error.what()};
  } catch (...) {
    return {TF_INTERNAL, "unknown exception"};
  }
}

// The first failure of a device, which stays.
class Health {
 public:
  void Note(const Status& error) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (first_.ok()) first_ = error;
    failed_.store(true, std::memory_order_release);
  }

  Status Check() {
    if (!failed_.load(std::memory_order_acquire)) return {};
    const std::lock_guard<std::mutex> lock(mutex_);
    return first_;
  }

 private:
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  Status first_;
};

// Runs the body of a callback: its status goes to the host, and no exception does.
template <typename Body>
inline void Run(TF_Status* status, Body body) noexcept {
  if (status == nullptr) return;
  try {
    const Status result = body();
    if (result.ok()) {
      TF_SetStatus(status, TF_OK, "");
    } else {
      TF_SetStatus(status, result.code, result.message.c_str());
    }
  } catch (...) {
    const Status error = Current();
    TF_SetStatus(status, error.code, error.message.c_str());
  }
}

// Runs the body of a callback without a status.
template <typename Value, typename Body>
inline Value RunQuiet(Value fallback, Body body) noexcept {
  try {
    return body();
  } catch (...) {
    return fallback;
  }
}

// ---- Memory ---------------------------------------------------------------------------------------

constexpr uint64_t kBase = 0x00d0000000000000;
constexpr uint64_t kSize = uint64_t{1} << 30;
constexpr uint64_t kGrain = 256;
// From here on addresses stand for memory that there was none left of.
constexpr uint64_t kRefused = 0xfffff00000000000;
constexpr uint64_t kRepeatedForEver = 2304;

// What is set aside for small tensors: pieces, how many of them, and which part of the free memory at most.
constexpr uint64_t kPiece = 64 << 10;
constexpr uint64_t kPieces = 16;
constexpr uint64_t kPart = 64;

struct Free {
  void operator()(char* memory) const { std::free(memory); }
};

struct Memory {
  std::mutex mutex;
  // None is used before it is written to.
  std::unique_ptr<char, Free> bytes{static_cast<char*>(std::calloc(kSize, 1))};

  // A range; null if it is outside.
  char* Part(uint64_t address, uint64_t size) {
    const uint64_t start = address - kBase;
    const uint64_t end = start + size;
    return start <= end && end <= kSize ? bytes.get() + start : nullptr;
  }
};

Status Outside() { return Invalid("the address is not the device's"); }

// Blocks whose sizes are powers of two, each put where one of its size was freed or behind all others.
class Blocks {
 public:
  std::optional<uint64_t> Allocate(uint64_t bytes) {
    uint64_t block = std::max(bytes, kGrain);
    if (block > kSize) return std::nullopt;
    const int power = block == 1 ? 0 : 64 - __builtin_clzll(block - 1);
    block = uint64_t{1} << power;
    std::vector<uint64_t>& free = free_[power];
    uint64_t at;
    if (!free.empty()) {
      at = free.back();
      free.pop_back();
    } else {
      if (block > kSize - end_) return std::nullopt;
      at = end_;
      end_ += block;
    }
    powers_[at / kGrain] = static_cast<uint8_t>(power);
    in_use_ += block;
    peak_ = std::max(peak_, in_use_);
    largest_ = std::max(largest_, bytes);
    ++count_;
    return at;
  }

  bool Release(uint64_t at) {
    if (at >= kSize || at % kGrain != 0) return false;
    const int power = std::exchange(powers_[at / kGrain], 0);
    if (power == 0) return false;
    in_use_ -= uint64_t{1} << power;
    free_[power].push_back(at);
    return true;
  }

  uint64_t in_use() const { return in_use_; }

  void Fill(SP_AllocatorStats* stats) const {
    stats->num_allocs = static_cast<int64_t>(count_);
    stats->bytes_in_use = static_cast<int64_t>(in_use_);
    stats->peak_bytes_in_use = static_cast<int64_t>(peak_);
    stats->largest_alloc_size = static_cast<int64_t>(largest_);
    stats->has_bytes_limit = 1;
    stats->bytes_limit = static_cast<int64_t>(kSize);
    stats->bytes_reserved = static_cast<int64_t>(end_);
    stats->peak_bytes_reserved = static_cast<int64_t>(end_);
    stats->has_bytes_reservable_limit = 0;
    stats->bytes_reservable_limit = 0;
    stats->largest_free_block_bytes = static_cast<int64_t>(kSize - end_);
    stats->struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
  }

 private:
  uint64_t end_ = 0;
  std::vector<uint8_t> powers_ = std::vector<uint8_t>(kSize / kGrain);
  std::array<std::vector<uint64_t>, 64> free_;
  uint64_t in_use_ = 0;
  uint64_t peak_ = 0;
  uint64_t count_ = 0;
  uint64_t largest_ = 0;
};

// ---- The device -----------------------------------------------------------------------------------

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

// ---- Callbacks: memory ----------------------------------------------------------------------------

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

// ---- Callbacks: streams ---------------------------------------------------------------------------

void CreateStream(const SP_Device* handle, SP_Stream* stream, TF_Status* status) {
  Run(status, [&]() -> Status {
    if (stream == nullptr) return Null("place for a stream");
    *stream = nullptr;
    Device* device = DeviceOf(handle);
    if (device == nullptr) return NoDevice();
    *stream = new Stream{device->shared_from_this(), std::make_shared<Line>()};
    return {};
  });
}

void DestroyStream(const SP_Device*, SP_Stream stream) {
  RunQuiet(0, [&] {
    if (stream == nullptr) return 0;
    Settle(*stream->device);
    delete stream;
    return 0;
  });
}

void CreateStreamDependency(const SP_Device* handle, SP_Stream dependent, SP_Stream other,
                            TF_Status* status) {
  Run(status, [&]() -> Status {
    return Enqueue(handle, dependent, [&](Device& device) -> Status {
      if (other == nullptr) return Null("stream");
      Settle(device);
      return {};
    });
  });
}

void GetStreamStatus(const SP_Device*, SP_Stream stream, TF_Status* status) {
  Run(status, [&]() -> Status {
    return stream == nullptr ? Null("stream") : stream->device->health.Check();
  });
}

// ---- Callbacks: events ----------------------------------------------------------------------------

void CreateEvent(const SP_Device* handle, SP_Event* event, TF_Status* status) {
  Run(status, [&]() -> Status {
    if (event == nullptr) return Null("place for an event");
    *event = nullptr;
    if (DeviceOf(handle) == nullptr) return NoDevice();
    *event = new Event();
    return {};
  });
}

void DestroyEvent(const SP_Device*, SP_Event event) {
  RunQuiet(0, [&] {
    delete event;
    return 0;
  });
}

bool IsComplete(Event& event) {
  const std::lock_guard<std::mutex> lock(event.mutex);
  return event.line == nullptr || event.line->done.load(std::memory_order_acquire) >= event.number;
}

SE_EventStatus GetEventStatus(const SP_Device* handle, SP_Event event) {
  return RunQuiet(SE_EVENT_COMPLETE, [&] {
    if (DeviceOf(handle) == nullptr || event == nullptr) return SE_EVENT_COMPLETE;
    return IsComplete(*event) ? SE_EVENT_COMPLETE : SE_EVENT_PENDING;
  });
}

void RecordEvent(const SP_Device*, SP_Stream stream, SP_Event event, TF_Status* status) {
  Run(status, [&]() -> Status {
    if (stream == nullptr) return Null("stream");
    if (event == nullptr) return Null("event");
    try {
      std::shared_ptr<Line> line = stream->line;
      const uint64_t number = line->done.load(std::memory_order_acquire);
      const std::lock_guard<std::mutex> lock(event->mutex);
      event->line.swap(line);
      event->number = number;
    } catch (...) {
      // The host does not look at the status.
      stream->device->health.Note(Current());
    }
    return {};
  });
}

Status Wait(Event& event) {
  // Work is done before it can be recorded.
  if (IsComplete(event)) return {};
  return {TF_INTERNAL, "an event is ahead of its stream"};
}

void WaitForEvent(const SP_Device* handle, SP_Stream stream, SP_Event event, TF_Status* status) {
  Run(status, [&]() -> Status {
    return Enqueue(handle, stream, [&](Device&) -> Status {
      return event == nullptr ? Null("event") : Wait(*event);
    });
  });
}

void BlockHostForEvent(const SP_Device*, SP_Event event, TF_Status* status) {
  Run(status, [&]() -> Status { return event == nullptr ? Status{} : Wait(*event); });
}

void BlockHostUntilDone(const SP_Device*, SP_Stream stream, TF_Status* status) {
  Run(status, [&]() -> Status {
    if (stream == nullptr) return {};
    Settle(*stream->device);
    return stream->device->health.Check();
  });
}

void SynchronizeAllActivity(const SP_Device* handle, TF_Status* status) {
  Run(status, [&]() -> Status {
    Device* device = DeviceOf(handle);
    if (device == nullptr) return NoDevice();
    Settle(*device);
    return device->health.Check();
  });
}

// ---- Callbacks: timers, which TensorFlow from 2.14 on does not use ---------------------------------

void CreateTimer(const SP_Device*, SP_Timer* timer, TF_Status*) { *timer = nullptr; }
void DestroyTimer(const SP_Device*, SP_Timer) {}
void UseTimer(const SP_Device*, SP_Stream, SP_Timer, TF_Status*) {}

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

// ---- The kernel -----------------------------------------------------------------------------------

struct DeleteTensor {
  void operator()(TF_Tensor* tensor) const { TF_DeleteTensor(tensor); }
};
using Tensor = std::unique_ptr<TF_Tensor, DeleteTensor>;

struct DeleteStatus {
  void operator()(TF_Status* status) const { TF_DeleteStatus(status); }
};

std::vector<int64_t> ShapeOf(const TF_Tensor* tensor) {
  std::vector<int64_t> shape(TF_NumDims(tensor));
  for (size_t dim = 0; dim < shape.size(); ++dim) shape[dim] = TF_Dim(tensor, dim);
  return shape;
}

// Adds tensors of equal shapes, or a scalar and a tensor.
Status Add(TF_OpKernelContext* context, TF_Status* status) {
  SP_Stream stream = TF_GetStream(context, status);
  if (TF_GetCode(status) != TF_OK) return {TF_GetCode(status), TF_Message(status)};
  if (stream == nullptr) return Null("stream");
  Status healthy = stream->device->health.Check();
  if (!healthy.ok()) return healthy;
  Tensor inputs[2];
  for (int index = 0; index < 2; ++index) {
    TF_Tensor* input = nullptr;
    TF_GetInput(context, index, &input, status);
    inputs[index].reset(input);
    if (TF_GetCode(status) != TF_OK) return {TF_GetCode(status), TF_Message(status)};
  }
  const std::vector<int64_t> x_shape = ShapeOf(inputs[0].get());
  const std::vector<int64_t> y_shape = ShapeOf(inputs[1].get());
  if (x_shape != y_shape && !x_shape.empty() && !y_shape.empty()) {
    return Invalid("the shapes cannot be added");
  }
  const std::vector<int64_t>& shape = x_shape.empty() ? y_shape : x_shape;
  const Tensor output(TF_AllocateOutput(context, 0, TF_FLOAT, shape.data(),
                                        static_cast<int>(shape.size()), 0, status));
  if (TF_GetCode(status) != TF_OK) return {TF_GetCode(status), TF_Message(status)};
  const TF_Tensor* tensors[3] = {inputs[0].get(), inputs[1].get(), output.get()};
  uint64_t at[3];
  uint64_t len[3];
  for (int index = 0; index < 3; ++index) {
    at[index] = reinterpret_cast<uint64_t>(TF_TensorData(tensors[index]));
    len[index] = static_cast<uint64_t>(TF_TensorElementCount(tensors[index]));
    if (len[index] == 0) return {};
    Status checked = CheckAddress(at[index]);
    if (!checked.ok()) return checked;
  }
  return Work(*stream->device, *stream, [&](Memory& memory) -> Status {
    char* part[3];
    for (int index = 0; index < 3; ++index) {
      part[index] = memory.Part(at[index], 4 * len[index]);
      if (part[index] == nullptr) return Outside();
    }
    const size_t x_step = len[0] > 1 ? 4 : 0;
    const size_t y_step = len[1] > 1 ? 4 : 0;
    for (uint64_t index = 0; index < len[2]; ++index) {
      float x, y;
      std::memcpy(&x, part[0] + index * x_step, sizeof x);
      std::memcpy(&y, part[1] + index * y_step, sizeof y);
      const float z = x + y;
      std::memcpy(part[2] + 4 * index, &z, sizeof z);
    }
    return {};
  });
}

void* NewKernel(TF_OpKernelConstruction*) { return nullptr; }

void Compute(void*, TF_OpKernelContext* context) {
  const std::unique_ptr<TF_Status, DeleteStatus> status(TF_NewStatus());
  Status result;
  try {
    result = Add(context, status.get());
  } catch (...) {
    result = Current();
  }
  if (!result.ok()) {
    TF_SetStatus(status.get(), result.code, result.message.c_str());
    TF_OpKernelContext_Failure(context, status.get());
  }
}

void DeleteKernel(void*) {}

// ---- The platform ---------------------------------------------------------------------------------

constexpr char kType[] = "CPP_BENCH";

void GetDeviceCount(const SP_Platform*, int* count, TF_Status* status) {
  *count = 1;
  TF_SetStatus(status, TF_OK, "");
}

void CreateDevice(const SP_Platform*, SE_CreateDeviceParams* params, TF_Status* status) {
  Run(status, [&]() -> Status {
    auto device = std::make_shared<Device>();
    if (device->memory.bytes == nullptr) return {TF_RESOURCE_EXHAUSTED, "no memory"};
    device->self = device;
    params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
    params->device->ordinal = params->ordinal;
    params->device->device_handle = device.get();
    return {};
  });
}

void DestroyDevice(const SP_Platform*, SP_Device* device) {
  if (Device* state = DeviceOf(device)) {
    device->device_handle = nullptr;
    const std::shared_ptr<Device> last = std::move(state->self);
  }
}

int32_t GetNumaNode(const SP_Device*) { return -1; }
int64_t GetMemoryBandwidth(const SP_Device*) { return -1; }
double GetGflops(const SP_Device*) { return -1; }

void CreateDeviceFns(const SP_Platform*, SE_CreateDeviceFnsParams* params, TF_Status* status) {
  params->device_fns->struct_size = SP_DEVICE_FNS_STRUCT_SIZE;
  params->device_fns->get_numa_node = GetNumaNode;
  params->device_fns->get_memory_bandwidth = GetMemoryBandwidth;
  params->device_fns->get_gflops = GetGflops;
  TF_SetStatus(status, TF_OK, "");
}

void DestroyDeviceFns(const SP_Platform*, SP_DeviceFns*) {}

void CreateStreamExecutor(const SP_Platform*, SE_CreateStreamExecutorParams* params,
                          TF_Status* status) {
  SP_StreamExecutor& table = *params->stream_executor;
  table.struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
  table.allocate = Allocate;
  table.deallocate = Deallocate;
  table.host_memory_allocate = HostMemoryAllocate;
  table.host_memory_deallocate = HostMemoryDeallocate;
  table.unified_memory_allocate = UnifiedMemoryAllocate;
  table.unified_memory_deallocate = UnifiedMemoryDeallocate;
  table.get_allocator_stats = GetAllocatorStats;
  table.device_memory_usage = DeviceMemoryUsage;
  table.create_stream = CreateStream;
  table.destroy_stream = DestroyStream;
  table.create_stream_dependency = CreateStreamDependency;
  table.get_stream_status = GetStreamStatus;
  table.create_event = CreateEvent;
  table.destroy_event = DestroyEvent;
  table.get_event_status = GetEventStatus;
  table.record_event = RecordEvent;
  table.wait_for_event = WaitForEvent;
  table.create_timer = CreateTimer;
  table.destroy_timer = DestroyTimer;
  table.start_timer = UseTimer;
  table.stop_timer = UseTimer;
  table.memcpy_dtoh = MemcpyDToH;
  table.memcpy_htod = MemcpyHToD;
  table.memcpy_dtod = MemcpyDToD;
  table.sync_memcpy_dtoh = SyncMemcpyDToH;
  table.sync_memcpy_htod = SyncMemcpyHToD;
  table.sync_memcpy_dtod = SyncMemcpyDToD;
  table.block_host_for_event = BlockHostForEvent;
  table.block_host_until_done = BlockHostUntilDone;
  table.synchronize_all_activity = SynchronizeAllActivity;
  table.mem_zero = MemZero;
  table.memset = Memset;
  table.memset32 = Memset32;
  table.host_callback = HostCallback;
  TF_SetStatus(status, TF_OK, "");
}

void DestroyStreamExecutor(const SP_Platform*, SP_StreamExecutor*) {}

void DestroyPlatform(SP_Platform*) {}
void DestroyPlatformFns(SP_PlatformFns*) {}

}  // namespace

// The headers declare neither as exported.
#define EXPORT extern "C" __attribute__((visibility("default")))

EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  params->platform->name = kType;
  params->platform->type = kType;
  params->platform->use_bfc_allocator = 1;
  params->platform->force_memory_growth = 1;
  SP_PlatformFns& fns = *params->platform_fns;
  fns.struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
  fns.get_device_count = GetDeviceCount;
  fns.create_device = CreateDevice;
  fns.destroy_device = DestroyDevice;
  fns.create_device_fns = CreateDeviceFns;
  fns.destroy_device_fns = DestroyDeviceFns;
  fns.create_stream_executor = CreateStreamExecutor;
  fns.destroy_stream_executor = DestroyStreamExecutor;
  params->destroy_platform = DestroyPlatform;
  params->destroy_platform_fns = DestroyPlatformFns;
  TF_SetStatus(status, TF_OK, "");
}

EXPORT void TF_InitKernel() {
  const std::unique_ptr<TF_Status, DeleteStatus> status(TF_NewStatus());
  TF_KernelBuilder* builder =
      TF_NewKernelBuilder("AddV2", kType, NewKernel, Compute, DeleteKernel);
  TF_KernelBuilder_TypeConstraint(builder, "T", TF_FLOAT, status.get());
  TF_RegisterKernelBuilder("CppBenchAddV2", builder, status.get());
}
