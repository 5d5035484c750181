// An op and a kernel for it in C++, linked with TensorFlow's functions. One kernel keeps a number, one has no state, one fails.

#include <stdio.h>
#include <stdlib.h>

#include <initializer_list>

#include "tensorflow/c/kernels.h"
#include "tensorflow/c/ops.h"

static void shape(TF_ShapeInferenceContext* context, TF_Status* status) { (void)context, (void)status; }

static void* create(TF_OpKernelConstruction* construction) {
  (void)construction;
  int* runs = static_cast<int*>(malloc(sizeof(int)));
  *runs = 40;
  return runs;
}
static void compute(void* kernel, TF_OpKernelContext* context) {
  (void)context;
  printf("the kernel runs: %d\n", ++*static_cast<int*>(kernel));
  fflush(stdout);
}
static void remove(void* kernel) { free(kernel); }
// Without `create`: its state is null.
static void stateless(void* kernel, TF_OpKernelContext* context) {
  (void)context;
  printf("the state is %s\n", kernel == nullptr ? "null" : "something");
  fflush(stdout);
}

static void fails(void* kernel, TF_OpKernelContext* context) {
  (void)kernel;
  TF_Status* status = TF_NewStatus();
  TF_SetStatus(status, TF_UNAVAILABLE, "no luck");
  TF_OpKernelContext_Failure(context, status);
  TF_DeleteStatus(status);
}

extern "C" __attribute__((visibility("default"))) void TF_InitKernel() {
  TF_Status* status = TF_NewStatus();
  for (const char* op : {"TracedState", "TracedStateless", "TracedFailing"}) {
    TF_OpDefinitionBuilder* definition = TF_NewOpDefinitionBuilder(op);
    TF_OpDefinitionBuilderSetIsStateful(definition, true);
    TF_OpDefinitionBuilderSetShapeInferenceFunction(definition, shape);
    TF_RegisterOpDefinition(definition, status);
    if (TF_GetCode(status) != TF_OK) abort();
  }
  TF_RegisterKernelBuilder("traced", TF_NewKernelBuilder("TracedState", "CPU", create, compute, remove), status);
  if (TF_GetCode(status) != TF_OK) abort();
  TF_RegisterKernelBuilder("bare", TF_NewKernelBuilder("TracedStateless", "CPU", nullptr, stateless, nullptr), status);
  if (TF_GetCode(status) != TF_OK) abort();
  TF_RegisterKernelBuilder("fails", TF_NewKernelBuilder("TracedFailing", "CPU", nullptr, fails, nullptr), status);
  if (TF_GetCode(status) != TF_OK) abort();
  TF_DeleteStatus(status);
}
