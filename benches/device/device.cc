// The device of plugin/src/lib.rs, written by hand in C++17 against TensorFlow's own headers: what the Rust
// plugin is measured against.
//
// Same design: one range of the host's memory behind a lock, whose addresses nobody can follow; work that is
// done within the call that requests it; a stream that counts what was done in it, and an event that is such
// a count. Same behaviour towards TensorFlow, as far as this device needs it:
//
// - no callback throws, and each writes its status;
// - a field of a struct of the host's is read and written only if its `struct_size` covers it;
// - handles may be null, where an earlier `create_*` failed;
// - an error that would abort the process is kept, and reported by what TensorFlow asks later;
// - a request that TensorFlow would repeat for ever gets an address that everything else refuses.
//
// Here are the platform and what TensorFlow looks for in a plugin; the headers beside this are for this file only.

#include <cstdint>
#include <memory>
#include <utility>

#include "tensorflow/c/experimental/stream_executor/stream_executor.h"
#include "tensorflow/c/kernels.h"
#include "tensorflow/c/tf_status.h"

#include "allocation.h"
#include "copies.h"
#include "kernel.h"
#include "state.h"
#include "status.h"
#include "streams.h"

namespace {

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
