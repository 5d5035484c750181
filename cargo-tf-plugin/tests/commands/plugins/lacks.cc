// A plugin that cannot be loaded by every TensorFlow: it uses a C function that 2.21 has lost, and a C++ function that
// only old releases have.

#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"

extern "C" void TF_Log(int level, const char* format, ...);

namespace tsl {
struct mutex {
  void unlock();
};
}  // namespace tsl

extern "C" __attribute__((visibility("default"))) void TF_InitPlugin(TF_FilesystemPluginInfo*) {
  TF_Log(0, "loaded");
  reinterpret_cast<tsl::mutex*>(64)->unlock();
}
