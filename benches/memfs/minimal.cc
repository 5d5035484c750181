// The least that answers the measured calls: what examples/memfs is measured against to see what its design and
// the SDK's guarantees cost beyond a search in a map and a copy of bytes.
//
// One thread at a time, correct callers, canonical names: no locks, no checks of arguments, no exceptions caught, no
// parents looked at, one constant message an error. Not a plugin to use.

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"
#include "tensorflow/c/tf_file_statistics.h"
#include "tensorflow/c/tf_status.h"

namespace {

using File = std::shared_ptr<std::string>;
// A directory is a null file.
using Nodes = std::map<std::string, File, std::less<>>;

Nodes& Of(const TF_Filesystem* filesystem) {
  return *static_cast<Nodes*>(filesystem->plugin_filesystem);
}

const File* Find(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  Nodes& nodes = Of(filesystem);
  const auto node = nodes.find(std::string_view(path));
  if (node == nodes.end()) {
    TF_SetStatus(status, TF_NOT_FOUND, "not found");
    return nullptr;
  }
  TF_SetStatus(status, TF_OK, "");
  return &node->second;
}

char* Copy(std::string_view text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

void Init(TF_Filesystem* filesystem, TF_Status* status) {
  filesystem->plugin_filesystem = new Nodes();
  TF_SetStatus(status, TF_OK, "");
}

void Cleanup(TF_Filesystem* filesystem) {
  delete static_cast<Nodes*>(filesystem->plugin_filesystem);
}

void NewRandomAccessFile(const TF_Filesystem* filesystem, const char* path,
                         TF_RandomAccessFile* file, TF_Status* status) {
  const File* found = Find(filesystem, path, status);
  if (found != nullptr) file->plugin_file = new File(*found);
}

void NewWritableFile(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                     TF_Status* status) {
  auto content = std::make_shared<std::string>();
  Of(filesystem).insert_or_assign(path, content);
  file->plugin_file = new File(std::move(content));
  TF_SetStatus(status, TF_OK, "");
}

void CreateDir(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  Of(filesystem).emplace(path, nullptr);
  TF_SetStatus(status, TF_OK, "");
}

void PathExists(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  Find(filesystem, path, status);
}

void Stat(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* stats,
          TF_Status* status) {
  const File* found = Find(filesystem, path, status);
  if (found == nullptr) return;
  stats->mtime_nsec = 0;
  stats->is_directory = *found == nullptr;
  stats->length = *found == nullptr ? 0 : static_cast<int64_t>((*found)->size());
}

char* TranslateName(const TF_Filesystem*, const char* name) { return Copy(name); }

int GetChildren(const TF_Filesystem* filesystem, const char* path, char*** entries,
                TF_Status* status) {
  const std::string prefix = std::string(path) + "/";
  Nodes& nodes = Of(filesystem);
  size_t count = 0, capacity = 0;
  *entries = nullptr;
  for (auto node = nodes.lower_bound(prefix); node != nodes.end(); ++node) {
    const std::string_view name = node->first;
    if (name.substr(0, prefix.size()) != prefix) break;
    const std::string_view rest = name.substr(prefix.size());
    if (rest.find('/') != std::string_view::npos) continue;
    if (count == capacity) {
      capacity = capacity == 0 ? 16 : capacity * 2;
      *entries = static_cast<char**>(std::realloc(*entries, capacity * sizeof(char*)));
    }
    (*entries)[count++] = Copy(rest);
  }
  TF_SetStatus(status, TF_OK, "");
  return static_cast<int>(count);
}

void CleanupReader(TF_RandomAccessFile* file) { delete static_cast<File*>(file->plugin_file); }

int64_t Read(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
             TF_Status* status) {
  const std::string& content = **static_cast<const File*>(file->plugin_file);
  const size_t start = offset < content.size() ? offset : content.size();
  const size_t length = n < content.size() - start ? n : content.size() - start;
  std::memcpy(buffer, content.data() + start, length);
  if (length == n) {
    TF_SetStatus(status, TF_OK, "");
  } else {
    TF_SetStatus(status, TF_OUT_OF_RANGE, "end of file");
  }
  return static_cast<int64_t>(length);
}

void CleanupWriter(TF_WritableFile* file) { delete static_cast<File*>(file->plugin_file); }

void Append(const TF_WritableFile* file, const char* buffer, size_t n, TF_Status* status) {
  (*static_cast<File*>(file->plugin_file))->append(buffer, n);
  TF_SetStatus(status, TF_OK, "");
}

int64_t Tell(const TF_WritableFile* file, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
  return static_cast<int64_t>((*static_cast<File*>(file->plugin_file))->size());
}

void Flush(const TF_WritableFile*, TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

void* Allocate(size_t size) { return std::malloc(size == 0 ? 1 : size); }
void Free(void* memory) { std::free(memory); }

template <typename Table>
Table* NewTable() {
  return static_cast<Table*>(std::calloc(1, sizeof(Table)));
}

}  // namespace

extern "C" void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = Allocate;
  info->plugin_memory_free = Free;
  info->num_schemes = 1;
  info->ops = NewTable<TF_FilesystemPluginOps>();
  TF_FilesystemPluginOps& ops = info->ops[0];
  TF_SetFilesystemVersionMetadata(&ops);
  ops.scheme = Copy("mem");

  ops.random_access_file_ops = NewTable<TF_RandomAccessFileOps>();
  ops.random_access_file_ops->cleanup = CleanupReader;
  ops.random_access_file_ops->read = Read;

  ops.writable_file_ops = NewTable<TF_WritableFileOps>();
  ops.writable_file_ops->cleanup = CleanupWriter;
  ops.writable_file_ops->append = Append;
  ops.writable_file_ops->tell = Tell;
  ops.writable_file_ops->flush = Flush;
  ops.writable_file_ops->close = Flush;

  ops.filesystem_ops = NewTable<TF_FilesystemOps>();
  ops.filesystem_ops->init = Init;
  ops.filesystem_ops->cleanup = Cleanup;
  ops.filesystem_ops->new_random_access_file = NewRandomAccessFile;
  ops.filesystem_ops->new_writable_file = NewWritableFile;
  ops.filesystem_ops->create_dir = CreateDir;
  ops.filesystem_ops->path_exists = PathExists;
  ops.filesystem_ops->stat = Stat;
  ops.filesystem_ops->translate_name = TranslateName;
  ops.filesystem_ops->get_children = GetChildren;
}
