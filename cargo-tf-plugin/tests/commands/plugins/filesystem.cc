// A filesystem in C++ that uses the C interface alone, complete as it is; the environment variable FAULT names what is wrong with it.

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <initializer_list>

#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"

static int is(const char* fault) {
  const char* wanted = getenv("FAULT");
  return wanted != nullptr && strcmp(wanted, fault) == 0;
}

// By name with IMPORTS, which TensorFlow up to 2.18 does not allow.
static void fail(TF_Status* status) {
#ifdef IMPORTS
  auto set = TF_SetStatus;
#else
  auto set = reinterpret_cast<decltype(&TF_SetStatus)>(dlsym(RTLD_DEFAULT, "TF_SetStatus"));
#endif
  set(status, TF_UNAVAILABLE, "no server");
}

static void* allocate(size_t size) { return calloc(1, size); }
template <typename T>
static T* make(size_t count = 1) {
  return static_cast<T*>(allocate(count * sizeof(T)));
}
static void init(TF_Filesystem* filesystem, TF_Status* status) {
  (void)filesystem;
  if (is("init-fails")) fail(status);
  if (is("init-crashes")) *(volatile int*)8 = 1;
}
static void cleanup(TF_Filesystem* filesystem) { (void)filesystem; }
static void open_file(const TF_Filesystem* f, const char* path, TF_RandomAccessFile* file, TF_Status* s) {
  (void)f, (void)path, (void)file, (void)s;
}
static void stat_path(const TF_Filesystem* f, const char* path, TF_FileStatistics* stats, TF_Status* s) {
  (void)f, (void)path, (void)stats, (void)s;
}
static void configure(const TF_Filesystem* f, const TF_Filesystem_Option* options, int count, TF_Status* s) {
  (void)f, (void)options, (void)count, (void)s;
}
static int end(const TF_Filesystem* f, TF_TransactionToken* token, TF_Status* s) {
  (void)f, (void)token, (void)s;
  return 0;
}
static char* translate(const TF_Filesystem* f, const char* uri) { (void)f; return strdup(uri); }
static void close_reader(TF_RandomAccessFile* file) { (void)file; }
static int64_t read_file(const TF_RandomAccessFile* f, uint64_t at, size_t n, char* to, TF_Status* s) {
  (void)f, (void)at, (void)n, (void)to, (void)s;
  return 0;
}

extern "C" __attribute__((visibility("default"))) void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  if (is("crashes")) *(volatile int*)8 = 1;
  if (is("aborts")) abort();
  if (is("exits")) exit(3);
  if (is("hangs")) for (;;) pause();
  if (is("hangs-with-a-child") && fork() >= 0) for (;;) pause();
  if (is("tells")) {
    for (const char* name : {"GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "PROXY_OF_TEST", "KEPT_FOR_TEST"}) {
      fprintf(stderr, "%s %s\n", name, getenv(name) ? "is there" : "is gone");
    }
  }
  static char lines[1 << 16];
  memset(lines, '\n', sizeof lines);
  while (is("floods")) fwrite(lines, 1, sizeof lines, stderr);
  if (is("talks")) {
    fputs("no such server\n", stderr);
    abort();
  }
  if (!is("no-allocator")) {
    info->plugin_memory_allocate = allocate;
    info->plugin_memory_free = free;
  }
  if (is("no-scheme")) return;
  int count = is("two") ? 2 : 1;
  info->num_schemes = count;
  info->ops = make<TF_FilesystemPluginOps>(count);
  for (int i = 0; i < count; ++i) {
    TF_FilesystemPluginOps* ops = &info->ops[i];
    TF_SetFilesystemVersionMetadata(ops);
    const char* scheme = is("bad-scheme") ? "my-fs" : is("taken") ? "file" : i == 0 ? "plain" : "other";
    ops->scheme = is("null-scheme") ? nullptr : strdup(scheme);
    auto fs = make<TF_FilesystemOps>();
    ops->filesystem_ops = fs;
    fs->init = is("no-init") ? nullptr : init;
    fs->cleanup = cleanup;
    fs->new_random_access_file = open_file;
    fs->stat = stat_path;
    if (!is("no-translate")) fs->translate_name = translate;
    if (is("garbage")) memset(&fs->delete_file, 1, sizeof fs->delete_file);
    if (is("configured") || is("newer")) fs->set_filesystem_configuration = configure;
    if (is("transactions")) fs->end_transaction = end;
    if (is("newer")) {
      // As with the headers of TensorFlow 2.22, which have no transactions.
      auto slots = reinterpret_cast<void**>(fs);
      memmove(slots + 22, slots + 28, 5 * sizeof(void*));
      ops->filesystem_ops_size = 27 * sizeof(void*);
    }
    if (is("abi")) ops->filesystem_ops_abi = 7;
    if (is("api")) ops->filesystem_ops_api = 7;
    if (is("no-size")) ops->filesystem_ops_size = 0;
    if (is("short")) ops->filesystem_ops_size = 64;
    if (is("no-tables")) continue;
    auto reader = make<TF_RandomAccessFileOps>();
    ops->random_access_file_ops = reader;
    reader->cleanup = is("no-file-cleanup") ? nullptr : close_reader;
    reader->read = is("no-read") ? nullptr : read_file;
  }
}
