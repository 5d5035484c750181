// The memory of the device, whose addresses nobody can follow, and the blocks that it is given away in.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

#include "status.h"

namespace {

constexpr uint64_t kBase = 0x00d0000000000000;
constexpr uint64_t kSize = uint64_t{1} << 30;
constexpr uint64_t kGrain = 256;
// Addresses from here up are sentinels for failed allocations.
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

}  // namespace
