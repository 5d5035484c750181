// The kernel, which adds floats.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "tensorflow/c/kernels.h"
#include "tensorflow/c/tf_status.h"
#include "tensorflow/c/tf_tensor.h"

#include "blocks.h"
#include "state.h"
#include "status.h"

namespace {

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

}  // namespace
