// A device in C++ that is complete as far as TensorFlow looks when it loads one; the environment variable FAULT names
// what is wrong with it.

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"

static int is(const char* fault) {
  const char* wanted = getenv("FAULT");
  return wanted != nullptr && strcmp(wanted, fault) == 0;
}

static void fail(TF_Status* status, const char* text) {
  auto set = reinterpret_cast<decltype(&TF_SetStatus)>(dlsym(RTLD_DEFAULT, "TF_SetStatus"));
  set(status, TF_UNAVAILABLE, text);
}

// No function is called but those that fill in a table.
static void nothing(void) {}
#define FILL(table, field) (table)->field = reinterpret_cast<decltype((table)->field)>(nothing)

static void count(const SP_Platform* platform, int* devices, TF_Status* status) {
  (void)platform, (void)status;
  *devices = 2;
}
static void device(const SP_Platform* p, SE_CreateDeviceParams* params, TF_Status* status) {
  (void)p;
  if (is("device-fails")) fail(status, "no memory");
  params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
  params->device->hardware_name = params->ordinal == 0 ? "Plain One" : nullptr;
}
static void device_fns(const SP_Platform* p, SE_CreateDeviceFnsParams* params, TF_Status* s) {
  (void)p, (void)s;
  params->device_fns->struct_size = SP_DEVICE_FNS_STRUCT_SIZE;
}
static void timer_fns(const SP_Platform* p, SP_TimerFns* fns, TF_Status* s) {
  (void)p, (void)s;
  fns->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
  FILL(fns, nanoseconds);
}
static void executor(const SP_Platform* p, SE_CreateStreamExecutorParams* params, TF_Status* status) {
  (void)p;
  if (is("executor-fails")) fail(status, "no driver");
  SP_StreamExecutor* e = params->stream_executor;
  e->struct_size = is("no-size") ? 0 : SP_STREAMEXECUTOR_STRUCT_SIZE;
  auto first = reinterpret_cast<void (**)()>(&e->allocate);
  auto last = reinterpret_cast<void (**)()>(&e->host_callback);
  for (auto slot = first; slot <= last; ++slot) *slot = nothing;
  if (is("overrun")) memset(static_cast<void*>(last + 1), 0, 64);
  if (is("no-memcpy-dtod")) e->memcpy_dtod = nullptr;
  if (is("no-allocate")) e->allocate = nullptr;
  if (is("no-timers")) e->create_timer = nullptr;
  e->unified_memory_allocate = nullptr;
}

extern "C" __attribute__((visibility("default"))) void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  if (is("fails")) fail(status, "wrong driver");
  params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  params->platform->name = "PLAIN_C";
  params->platform->type = is("name") ? "plain2" : is("no-type") ? nullptr : "PLAIN";
  params->platform->supports_unified_memory = is("unified");
  if (!is("no-destroy")) FILL(params, destroy_platform);
  FILL(params, destroy_platform_fns);
  SP_PlatformFns* fns = params->platform_fns;
  fns->struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
  if (!is("no-count")) fns->get_device_count = count;
  fns->create_device = device;
  FILL(fns, destroy_device);
  fns->create_device_fns = device_fns;
  FILL(fns, destroy_device_fns);
  fns->create_stream_executor = executor;
  FILL(fns, destroy_stream_executor);
  fns->create_timer_fns = timer_fns;
  FILL(fns, destroy_timer_fns);
}
