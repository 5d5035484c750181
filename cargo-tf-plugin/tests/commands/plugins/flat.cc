// A filesystem in C++ that keeps files in memory, as much of one as a benchmark needs. The environment variable FAULT is
// the name of an operation and how it misbehaves: "stat:error", "stat:crash", "stat:hang".

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"

static std::mutex lock;
static std::map<std::string, std::string> files;

static void set(TF_Status* status, TF_Code code, const char* text) {
  static auto function = reinterpret_cast<decltype(&TF_SetStatus)>(dlsym(RTLD_DEFAULT, "TF_SetStatus"));
  function(status, code, text);
}

static bool faulty(const char* operation, TF_Status* status) {
  const char* fault = getenv("FAULT");
  size_t length = strlen(operation);
  if (fault == nullptr || strncmp(fault, operation, length) != 0 || fault[length] != ':') return false;
  if (strcmp(fault + length, ":crash") == 0) abort();
  while (strcmp(fault + length, ":hang") == 0) pause();
  set(status, TF_DATA_LOSS, "the fault that was requested");
  return true;
}

static bool find(const char* path, TF_Status* status) {
  bool found = files.count(path) > 0;
  if (!found) set(status, TF_NOT_FOUND, path);
  return found;
}

static void init(TF_Filesystem*, TF_Status* status) { faulty("init", status); }
static void cleanup(TF_Filesystem*) {}

static void open_file(const TF_Filesystem*, const char* path, TF_RandomAccessFile* file, TF_Status* status) {
  std::lock_guard<std::mutex> guard(lock);
  if (!faulty("new_random_access_file", status) && find(path, status)) file->plugin_file = new std::string(path);
}
static void close_reader(TF_RandomAccessFile* file) { delete static_cast<std::string*>(file->plugin_file); }
static int64_t read_file(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer, TF_Status* status) {
  std::lock_guard<std::mutex> guard(lock);
  if (faulty("read", status)) return -1;
  const std::string& content = files[*static_cast<std::string*>(file->plugin_file)];
  size_t length = offset < content.size() ? content.copy(buffer, n, offset) : 0;
  if (length < n) set(status, TF_OUT_OF_RANGE, "end of file");
  return static_cast<int64_t>(length);
}

static void create_file(const TF_Filesystem*, const char* path, TF_WritableFile* file, TF_Status* status) {
  std::lock_guard<std::mutex> guard(lock);
  if (faulty("new_writable_file", status)) return;
  files[path].clear();
  file->plugin_file = new std::string(path);
}
static void close_writer(TF_WritableFile* file) { delete static_cast<std::string*>(file->plugin_file); }
static void append(const TF_WritableFile* file, const char* buffer, size_t n, TF_Status* status) {
  std::lock_guard<std::mutex> guard(lock);
  if (!faulty("append", status)) files[*static_cast<std::string*>(file->plugin_file)].append(buffer, n);
}
static void close_file(const TF_WritableFile*, TF_Status* status) { faulty("close", status); }

static void delete_file(const TF_Filesystem*, const char* path, TF_Status* status) {
  std::lock_guard<std::mutex> guard(lock);
  if (!faulty("delete_file", status) && find(path, status)) files.erase(path);
}
static void stat_file(const TF_Filesystem*, const char* path, TF_FileStatistics* stats, TF_Status* status) {
  std::lock_guard<std::mutex> guard(lock);
  if (faulty("stat", status) || !find(path, status)) return;
  *stats = {static_cast<int64_t>(files[path].size()), 0, false};
}
static void path_exists(const TF_Filesystem*, const char* path, TF_Status* status) {
  std::lock_guard<std::mutex> guard(lock);
  if (!faulty("path_exists", status)) find(path, status);
}
static int list(const TF_Filesystem*, const char* path, char*** entries, TF_Status* status) {
  std::lock_guard<std::mutex> guard(lock);
  if (faulty("get_children", status)) return -1;
  std::vector<char*> found;
  std::string directory = std::string(path) + "/";
  for (const auto& file : files)
    if (file.first.compare(0, directory.size(), directory) == 0)
      found.push_back(strdup(file.first.c_str() + directory.size()));
  *entries = static_cast<char**>(calloc(found.size() + 1, sizeof(char*)));
  for (size_t i = 0; i < found.size(); ++i) (*entries)[i] = found[i];
  return static_cast<int>(found.size());
}
static char* translate(const TF_Filesystem*, const char* uri) { return strdup(uri); }

template <typename T>
static T* table() {
  return static_cast<T*>(calloc(1, sizeof(T)));
}

extern "C" __attribute__((visibility("default"))) void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = malloc;
  info->plugin_memory_free = free;
  info->num_schemes = 1;
  info->ops = table<TF_FilesystemPluginOps>();
  TF_SetFilesystemVersionMetadata(info->ops);
  info->ops->scheme = strdup("flat");
  auto ops = info->ops->filesystem_ops = table<TF_FilesystemOps>();
  ops->init = init;
  ops->cleanup = cleanup;
  ops->new_random_access_file = open_file;
  ops->new_writable_file = create_file;
  ops->delete_file = delete_file;
  ops->stat = stat_file;
  ops->path_exists = path_exists;
  ops->get_children = list;
  ops->translate_name = translate;
  auto readers = info->ops->random_access_file_ops = table<TF_RandomAccessFileOps>();
  readers->cleanup = close_reader;
  readers->read = read_file;
  auto writers = info->ops->writable_file_ops = table<TF_WritableFileOps>();
  writers->cleanup = close_writer;
  writers->append = append;
  writers->close = close_file;
}
