// The ops of `plugin/src/lib.rs` as a C++ author writes them: against TensorFlow's own headers, for one release of it.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "tensorflow/core/framework/op.h"
#include "tensorflow/core/framework/op_kernel.h"
#include "tensorflow/core/framework/shape_inference.h"
#include "tensorflow/core/framework/tensor.h"
#include "tensorflow/core/framework/tensor_shape.h"
#include "tensorflow/core/util/work_sharder.h"

namespace {

using tensorflow::OpKernel;
using tensorflow::OpKernelConstruction;
using tensorflow::OpKernelContext;
using tensorflow::Tensor;
using tensorflow::TensorShape;
using tensorflow::tstring;
using tensorflow::shape_inference::InferenceContext;

// Without the type of its result, which is `Status` of TensorFlow in 2.12 and of Abseil later.
const auto kSameShape = [](InferenceContext* c) {
  c->set_output(0, c->input(0));
  return decltype(c->WithRank(c->input(0), 1, nullptr))();
};

const auto kRagged = [](InferenceContext* c) {
  c->set_output(0, c->UnknownShapeOfRank(1));
  c->set_output(1, c->UnknownShapeOfRank(1));
  return decltype(c->WithRank(c->input(0), 1, nullptr))();
};

// Numbers.

class Scale : public OpKernel {
 public:
  explicit Scale(OpKernelConstruction* c) : OpKernel(c) { OP_REQUIRES_OK(c, c->GetAttr("factor", &factor_)); }

  void Compute(OpKernelContext* c) override {
    const Tensor& x = c->input(0);
    Tensor* y = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, x.shape(), &y));
    const float* from = x.flat<float>().data();
    float* to = y->flat<float>().data();
    const int64_t count = x.NumElements();
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] * factor_;
  }

 private:
  float factor_;
};

class ScaleReuse : public OpKernel {
 public:
  explicit ScaleReuse(OpKernelConstruction* c) : OpKernel(c) { OP_REQUIRES_OK(c, c->GetAttr("factor", &factor_)); }

  void Compute(OpKernelContext* c) override {
    const Tensor& x = c->input(0);
    Tensor* y = nullptr;
    OP_REQUIRES_OK(c, c->forward_input_or_allocate_output({0}, 0, x.shape(), &y));
    const float* from = x.flat<float>().data();
    float* to = y->flat<float>().data();
    const int64_t count = x.NumElements();
    for (int64_t i = 0; i < count; ++i) to[i] = from[i] * factor_;
  }

 private:
  float factor_;
};

class Buckets : public OpKernel {
 public:
  explicit Buckets(OpKernelConstruction* c) : OpKernel(c) {
    OP_REQUIRES_OK(c, c->GetAttr("boundaries", &boundaries_));
    std::sort(boundaries_.begin(), boundaries_.end());
  }

  void Compute(OpKernelContext* c) override {
    const Tensor& x = c->input(0);
    Tensor* buckets = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, x.shape(), &buckets));
    const float* from = x.flat<float>().data();
    int64_t* to = buckets->flat<int64_t>().data();
    const int64_t count = x.NumElements();
    for (int64_t i = 0; i < count; ++i) {
      to[i] = std::upper_bound(boundaries_.begin(), boundaries_.end(), from[i]) - boundaries_.begin();
    }
  }

 private:
  std::vector<float> boundaries_;
};

class Logistic : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* c) override {
    const Tensor& x = c->input(0);
    Tensor* y = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, x.shape(), &y));
    const float* from = x.flat<float>().data();
    float* to = y->flat<float>().data();
    const auto& workers = *c->device()->tensorflow_cpu_worker_threads();
    // About 10 ns each.
    tensorflow::Shard(workers.num_threads, workers.workers, x.NumElements(), 30, [&](int64_t start, int64_t end) {
      for (int64_t i = start; i < end; ++i) to[i] = 1.0f / (1.0f + std::exp(-from[i]));
    });
  }
};

// Strings.

class Upper : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* c) override {
    const Tensor& text = c->input(0);
    Tensor* upper = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, text.shape(), &upper));
    const auto from = text.flat<tstring>();
    auto to = upper->flat<tstring>();
    for (int64_t i = 0; i < from.size(); ++i) {
      const size_t size = from(i).size();
      to(i).resize_uninitialized(size);
      const char* source = from(i).data();
      char* target = to(i).mdata();
      for (size_t at = 0; at < size; ++at) {
        const char letter = source[at];
        target[at] = letter >= 'a' && letter <= 'z' ? letter - 32 : letter;
      }
    }
  }
};

bool IsSpace(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r'; }

class Words : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* c) override {
    const Tensor& text = c->input(0);
    OP_REQUIRES(c, text.dims() == 1, tensorflow::errors::InvalidArgument("text must be a vector"));
    const auto texts = text.vec<tstring>();
    Tensor* splits = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(1, TensorShape({texts.size() + 1}), &splits));
    auto ends = splits->vec<int64_t>();
    ends(0) = 0;
    std::vector<std::string_view> words;
    for (int64_t i = 0; i < texts.size(); ++i) {
      const char* at = texts(i).data();
      const char* const end = at + texts(i).size();
      while (true) {
        while (at < end && IsSpace(*at)) ++at;
        if (at == end) break;
        const char* const start = at;
        while (at < end && !IsSpace(*at)) ++at;
        words.emplace_back(start, at - start);
      }
      ends(i + 1) = words.size();
    }
    Tensor* values = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, TensorShape({static_cast<int64_t>(words.size())}), &values));
    auto to = values->vec<tstring>();
    for (size_t i = 0; i < words.size(); ++i) to(i).assign(words[i].data(), words[i].size());
  }
};

class Codes : public OpKernel {
 public:
  using OpKernel::OpKernel;

  void Compute(OpKernelContext* c) override {
    const Tensor& text = c->input(0);
    OP_REQUIRES(c, text.dims() == 1, tensorflow::errors::InvalidArgument("text must be a vector"));
    const auto texts = text.vec<tstring>();
    Tensor* splits = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(1, TensorShape({texts.size() + 1}), &splits));
    auto ends = splits->vec<int64_t>();
    ends(0) = 0;
    for (int64_t i = 0; i < texts.size(); ++i) ends(i + 1) = ends(i) + texts(i).size();
    Tensor* values = nullptr;
    OP_REQUIRES_OK(c, c->allocate_output(0, TensorShape({ends(texts.size())}), &values));
    int32_t* to = values->vec<int32_t>().data();
    for (int64_t i = 0; i < texts.size(); ++i) {
      const char* from = texts(i).data();
      const size_t size = texts(i).size();
      for (size_t at = 0; at < size; ++at) *to++ = static_cast<uint8_t>(from[at]);
    }
  }
};

REGISTER_OP("CppScale")
    .Input("x: float")
    .Output("y: float")
    .Attr("factor: float = 1.0")
    .SetShapeFn(kSameShape);
REGISTER_OP("CppScaleReuse")
    .Input("x: float")
    .Output("y: float")
    .Attr("factor: float = 1.0")
    .SetShapeFn(kSameShape);
REGISTER_OP("CppBuckets")
    .Input("x: float")
    .Output("buckets: int64")
    .Attr("boundaries: list(float)")
    .SetShapeFn(kSameShape);
REGISTER_OP("CppLogistic").Input("x: float").Output("y: float").SetShapeFn(kSameShape);
REGISTER_OP("CppUpper").Input("text: string").Output("upper: string").SetShapeFn(kSameShape);
REGISTER_OP("CppWords")
    .Input("text: string")
    .Output("words_values: string")
    .Output("words_row_splits: int64")
    .SetShapeFn(kRagged);
REGISTER_OP("CppCodes")
    .Input("text: string")
    .Output("codes_values: int32")
    .Output("codes_row_splits: int64")
    .SetShapeFn(kRagged);

REGISTER_KERNEL_BUILDER(Name("CppScale").Device(tensorflow::DEVICE_CPU), Scale);
REGISTER_KERNEL_BUILDER(Name("CppScaleReuse").Device(tensorflow::DEVICE_CPU), ScaleReuse);
REGISTER_KERNEL_BUILDER(Name("CppBuckets").Device(tensorflow::DEVICE_CPU), Buckets);
REGISTER_KERNEL_BUILDER(Name("CppLogistic").Device(tensorflow::DEVICE_CPU), Logistic);
REGISTER_KERNEL_BUILDER(Name("CppUpper").Device(tensorflow::DEVICE_CPU), Upper);
REGISTER_KERNEL_BUILDER(Name("CppWords").Device(tensorflow::DEVICE_CPU), Words);
REGISTER_KERNEL_BUILDER(Name("CppCodes").Device(tensorflow::DEVICE_CPU), Codes);

}  // namespace
