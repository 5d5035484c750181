// Errors: as values, as a device keeps them, and at the boundary to the host, which no exception passes.

#pragma once

#include <atomic>
#include <exception>
#include <mutex>
#include <new>
#include <string>

#include "tensorflow/c/tf_status.h"

namespace {

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

}  // namespace
