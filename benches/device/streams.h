// Callbacks: streams, events and timers.

#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/tf_status.h"

#include "state.h"
#include "status.h"

namespace {

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

// ---- Callbacks: timers, which TensorFlow 2.14 and later do not use ---------------------------------

void CreateTimer(const SP_Device*, SP_Timer* timer, TF_Status*) { *timer = nullptr; }
void DestroyTimer(const SP_Device*, SP_Timer) {}
void UseTimer(const SP_Device*, SP_Stream, SP_Timer, TF_Status*) {}

}  // namespace
