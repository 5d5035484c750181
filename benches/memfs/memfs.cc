// An in-memory filesystem for TensorFlow with the design of examples/memfs, written by hand in C++17
// against TensorFlow's own header: what the Rust plugin is measured against.
//
// Same design: one reader-writer lock around an ordered map from the whole URI to a file, or to null
// for a directory; a file is shared and has its own reader-writer lock around its bytes. Same answers:
// the bench compares codes, messages and data of both before it measures. The operations that
// examples/memfs leaves to the SDK's defaults and that are not measured (rename, copy, globbing) are
// left to TensorFlow's here.
//
// The ordered map is std::map, a red-black tree; with MEMFS_BTREE it is Abseil's B-tree, the data
// structure of Rust's BTreeMap.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#ifdef MEMFS_BTREE
#include "absl/container/btree_map.h"
#endif
#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"
#include "tensorflow/c/tf_file_statistics.h"
#include "tensorflow/c/tf_status.h"

namespace {

// ---- Errors ---------------------------------------------------------------------------------------

// Carried as a value, because a missing path is an everyday answer and a throw costs microseconds.
struct Status {
  TF_Code code = TF_OK;
  std::string message;

  bool ok() const { return code == TF_OK; }
};

Status Fail(TF_Code code, std::string_view subject, std::string_view problem) {
  Status status{code, {}};
  status.message.reserve(subject.size() + problem.size());
  status.message.append(subject).append(problem);
  return status;
}

Status NotFound(std::string_view uri) { return Fail(TF_NOT_FOUND, uri, ": not found"); }
Status AlreadyExists(std::string_view uri) {
  return Fail(TF_ALREADY_EXISTS, uri, ": already exists");
}
Status IsADirectory(std::string_view uri) {
  return Fail(TF_FAILED_PRECONDITION, uri, ": is a directory");
}
Status NotADirectory(std::string_view uri) {
  return Fail(TF_FAILED_PRECONDITION, uri, ": not a directory");
}
Status NotEmpty(std::string_view uri) {
  return Fail(TF_FAILED_PRECONDITION, uri, ": directory is not empty");
}
Status NullArgument() { return {TF_INVALID_ARGUMENT, "an argument is a null pointer"}; }
Status NotOpen() {
  return {TF_FAILED_PRECONDITION,
          "the filesystem or file is not open: it failed to open or was cleaned up"};
}
Status Closed() {
  return {TF_FAILED_PRECONDITION, "the file is closed; open it again to append"};
}
Status EndOfFile() { return {TF_OUT_OF_RANGE, "end of file"}; }

// Runs the body of an operation: its status goes to the host, and no exception does.
template <typename Body>
inline bool Run(TF_Status* status, Body body) noexcept {
  if (status == nullptr) return false;
  try {
    const Status result = body();
    if (result.ok()) {
      TF_SetStatus(status, TF_OK, "");
      return true;
    }
    TF_SetStatus(status, result.code, result.message.c_str());
  } catch (const std::bad_alloc&) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "the plugin is out of memory");
  } catch (const std::exception& error) {
    TF_SetStatus(status, TF_INTERNAL, error.what());
  } catch (...) {
    TF_SetStatus(status, TF_INTERNAL, "unknown exception");
  }
  return false;
}

// ---- Names ----------------------------------------------------------------------------------------

constexpr std::string_view kScheme = "mem";
constexpr std::string_view kPrefix = "mem://";
constexpr std::string_view kEmptyHostRoot = "mem:///";

bool StartsWith(std::string_view text, std::string_view prefix) {
  return text.size() >= prefix.size() &&
         std::memcmp(text.data(), prefix.data(), prefix.size()) == 0;
}

// A canonical name, `mem://host/path`.
struct Uri {
  std::string_view name;
  size_t path;  // Where the path begins: after the host.

  bool IsRoot() const { return name.size() <= path + 1; }

  Uri Parent() const {
    const size_t slash = name.rfind('/');
    // The root keeps its slash.
    return {name.substr(0, slash == path ? path + 1 : slash), path};
  }
};

// Length of `scheme` in `scheme://`, or 0 without one.
size_t SchemeLength(std::string_view name) {
  size_t length = 0;
  for (; length < name.size(); ++length) {
    const char c = name[length];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && (length == 0 || !((c >= '0' && c <= '9') || c == '.'))) break;
  }
  return StartsWith(name.substr(length), "://") ? length : 0;
}

size_t PathStart(std::string_view name) {
  size_t host = kPrefix.size();
  if (!StartsWith(name, kPrefix)) {
    const size_t scheme = SchemeLength(name);
    if (scheme == 0) return 0;
    host = scheme + 3;
  }
  const size_t slash = name.find('/', host);
  return slash == std::string_view::npos ? name.size() : slash;
}

bool IsCanonical(std::string_view path) {
  if (path.empty() || path.front() != '/') return false;
  if (path.size() == 1) return true;
  if (path.back() == '/') return false;
  for (size_t slash = 0; slash != std::string_view::npos; slash = path.find('/', slash + 1)) {
    // There is a byte after each slash, since the last byte is none.
    const char first = path[slash + 1];
    if (first == '/') return false;
    if (first != '.') continue;
    const std::string_view component = path.substr(slash + 1, path.find('/', slash + 1) - slash - 1);
    if (component == "." || component == "..") return false;
  }
  return true;
}

// Drops empty and `.` components and resolves `..` without leaving the host.
std::string Canonical(std::string_view name, size_t path) {
  std::string clean(name.substr(0, path));
  clean.reserve(name.size() + 1);
  size_t start = path;
  while (start <= name.size()) {
    size_t end = name.find('/', start);
    if (end == std::string_view::npos) end = name.size();
    const std::string_view component = name.substr(start, end - start);
    if (component == "..") {
      const size_t slash = clean.rfind('/');
      clean.resize(slash == std::string::npos || slash < path ? path : slash);
    } else if (!component.empty() && component != ".") {
      clean.append(1, '/').append(component);
    }
    start = end + 1;
  }
  if (clean.size() == path) clean.push_back('/');
  return clean;
}

Status ForeignScheme(std::string_view name, std::string_view scheme) {
  std::string problem = ": this filesystem serves `mem://`, not `";
  problem.append(scheme).append("://`");
  return Fail(TF_FAILED_PRECONDITION, name, problem);
}

// Runs an operation on the path that the host passes.
template <typename Operation>
inline Status WithUri(const char* argument, Operation operation) {
  if (argument == nullptr) return NullArgument();
  std::string_view name(argument);
  if (name == "/") name = kEmptyHostRoot;
  const size_t path = PathStart(name);
  if (!StartsWith(name, kPrefix)) {
    const size_t scheme = SchemeLength(name);
    if (scheme != 0) return ForeignScheme(name, name.substr(0, scheme));
  }
  if (IsCanonical(name.substr(path))) return operation(Uri{name, path});
  const std::string clean = Canonical(name, path);
  return operation(Uri{clean, path});
}

// ---- The filesystem -------------------------------------------------------------------------------

struct File {
  std::shared_mutex mutex;
  std::string bytes;
};
using FilePtr = std::shared_ptr<File>;
// A directory is a null file. Roots are always there.
#ifdef MEMFS_BTREE
using Nodes = absl::btree_map<std::string, FilePtr, std::less<>>;
#else
using Nodes = std::map<std::string, FilePtr, std::less<>>;
#endif

struct MemFs {
  std::shared_mutex mutex;
  Nodes nodes;
};

struct Writer {
  FilePtr file;
  bool closed = false;
};

const FilePtr kDirectory;

// The node, or null if there is none.
const FilePtr* Find(const Nodes& nodes, const Uri& uri) {
  const auto node = nodes.find(uri.name);
  if (node != nodes.end()) return &node->second;
  return uri.IsRoot() ? &kDirectory : nullptr;
}

// Why there is no node: the nearest one above is a file, or a directory.
Status Missing(const Nodes& nodes, const Uri& uri) {
  for (Uri dir = uri; !dir.IsRoot();) {
    dir = dir.Parent();
    const auto node = nodes.find(dir.name);
    if (node == nodes.end()) continue;
    if (node->second != nullptr) return NotADirectory(uri.name);
    break;
  }
  return NotFound(uri.name);
}

Status FindFile(const Nodes& nodes, const Uri& uri, FilePtr* file) {
  const FilePtr* node = Find(nodes, uri);
  if (node == nullptr) return Missing(nodes, uri);
  if (*node == nullptr) return IsADirectory(uri.name);
  *file = *node;
  return {};
}

Status RequireDir(const Nodes& nodes, const Uri& uri) {
  const FilePtr* node = Find(nodes, uri);
  if (node == nullptr) return Missing(nodes, uri);
  return *node == nullptr ? Status{} : NotADirectory(uri.name);
}

// Calls `visit` with the name of each entry of a directory until it returns false.
template <typename Visit>
void ForEachChild(const Nodes& nodes, const Uri& dir, Visit visit) {
  std::string prefix;
  prefix.reserve(dir.name.size() + 1);
  prefix.append(dir.name);
  if (prefix.back() != '/') prefix.push_back('/');
  for (auto node = nodes.lower_bound(prefix); node != nodes.end(); ++node) {
    const std::string_view name = node->first;
    if (!StartsWith(name, prefix)) break;
    const std::string_view rest = name.substr(prefix.size());
    if (rest.find('/') == std::string_view::npos && !visit(rest)) break;
  }
}

Status Insert(Nodes* nodes, const Uri& uri, FilePtr node) {
  if (!uri.IsRoot()) {
    Status parent = RequireDir(*nodes, uri.Parent());
    if (!parent.ok()) return parent;
  }
  nodes->insert_or_assign(std::string(uri.name), std::move(node));
  return {};
}

Status Create(Nodes* nodes, const Uri& uri, FilePtr* file) {
  const FilePtr* node = Find(*nodes, uri);
  if (node != nullptr && *node == nullptr) return IsADirectory(uri.name);
  *file = std::make_shared<File>();
  return Insert(nodes, uri, *file);
}

MemFs* Of(const TF_Filesystem* filesystem) {
  return filesystem == nullptr ? nullptr : static_cast<MemFs*>(filesystem->plugin_filesystem);
}

// ---- Memory for the host --------------------------------------------------------------------------

void* Allocate(size_t size) { return std::malloc(size == 0 ? 1 : size); }
void Free(void* memory) { std::free(memory); }

struct FreeDeleter {
  void operator()(void* memory) const { Free(memory); }
};
using CString = std::unique_ptr<char, FreeDeleter>;

CString MakeCString(std::string_view text) {
  CString copy(static_cast<char*>(Allocate(text.size() + 1)));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy.get(), text.data(), text.size());
  copy.get()[text.size()] = '\0';
  return copy;
}

// ---- Operations on files --------------------------------------------------------------------------

void CleanupReader(TF_RandomAccessFile* file) {
  if (file == nullptr) return;
  delete static_cast<FilePtr*>(file->plugin_file);
  file->plugin_file = nullptr;
}

int64_t Read(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
             TF_Status* status) {
  int64_t read = -1;
  Run(status, [&]() -> Status {
    if (file == nullptr || (buffer == nullptr && n > 0)) return NullArgument();
    const auto* state = static_cast<const FilePtr*>(file->plugin_file);
    if (state == nullptr) return NotOpen();
    File& content = **state;
    const std::shared_lock<std::shared_mutex> lock(content.mutex);
    const size_t size = content.bytes.size();
    const size_t start = offset < size ? static_cast<size_t>(offset) : size;
    const size_t length = std::min(n, size - start);
    if (length > 0) std::memcpy(buffer, content.bytes.data() + start, length);
    read = static_cast<int64_t>(length);
    return length == n ? Status{} : EndOfFile();
  });
  return read;
}

void CleanupWriter(TF_WritableFile* file) {
  if (file == nullptr) return;
  delete static_cast<Writer*>(file->plugin_file);
  file->plugin_file = nullptr;
}

// Runs an operation on an open writer, which the host uses from one thread at a time.
template <typename Operation>
inline Status WithWriter(const TF_WritableFile* file, Operation operation) {
  if (file == nullptr) return NullArgument();
  auto* writer = static_cast<Writer*>(file->plugin_file);
  return writer == nullptr ? NotOpen() : operation(*writer);
}

void Append(const TF_WritableFile* file, const char* buffer, size_t n, TF_Status* status) {
  Run(status, [&]() -> Status {
    if (buffer == nullptr && n > 0) return NullArgument();
    return WithWriter(file, [&](Writer& writer) -> Status {
      if (writer.closed) return Closed();
      const std::unique_lock<std::shared_mutex> lock(writer.file->mutex);
      writer.file->bytes.append(buffer, n);
      return {};
    });
  });
}

int64_t Tell(const TF_WritableFile* file, TF_Status* status) {
  int64_t position = -1;
  Run(status, [&]() -> Status {
    return WithWriter(file, [&](Writer& writer) -> Status {
      if (writer.closed) return Closed();
      const std::shared_lock<std::shared_mutex> lock(writer.file->mutex);
      position = static_cast<int64_t>(writer.file->bytes.size());
      return {};
    });
  });
  return position;
}

void Flush(const TF_WritableFile* file, TF_Status* status) {
  Run(status, [&]() -> Status { return WithWriter(file, [](Writer&) -> Status { return {}; }); });
}

void Close(const TF_WritableFile* file, TF_Status* status) {
  Run(status, [&]() -> Status {
    return WithWriter(file, [](Writer& writer) -> Status {
      writer.closed = true;
      return {};
    });
  });
}

// ---- Operations on the filesystem -----------------------------------------------------------------

void Init(TF_Filesystem* filesystem, TF_Status* status) {
  Run(status, [&]() -> Status {
    if (filesystem == nullptr) return NullArgument();
    filesystem->plugin_filesystem = new MemFs();
    return {};
  });
}

void Cleanup(TF_Filesystem* filesystem) {
  delete Of(filesystem);
  if (filesystem != nullptr) filesystem->plugin_filesystem = nullptr;
}

// Runs an operation on a filesystem and a path, with the map locked by `Lock`.
template <template <typename> class Lock, typename Operation>
inline bool RunOnPath(const TF_Filesystem* filesystem, const char* path, TF_Status* status,
                      Operation operation) {
  return Run(status, [&]() -> Status {
    MemFs* memfs = Of(filesystem);
    if (memfs == nullptr) return NotOpen();
    return WithUri(path, [&](const Uri& uri) -> Status {
      const Lock<std::shared_mutex> lock(memfs->mutex);
      return operation(memfs->nodes, uri);
    });
  });
}

void NewRandomAccessFile(const TF_Filesystem* filesystem, const char* path,
                         TF_RandomAccessFile* file, TF_Status* status) {
  RunOnPath<std::shared_lock>(
      filesystem, path, status, [&](const Nodes& nodes, const Uri& uri) -> Status {
        if (file == nullptr) return NullArgument();
        FilePtr found;
        Status result = FindFile(nodes, uri, &found);
        if (result.ok()) file->plugin_file = new FilePtr(std::move(found));
        return result;
      });
}

void NewWritableFile(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                     TF_Status* status) {
  RunOnPath<std::unique_lock>(
      filesystem, path, status, [&](Nodes& nodes, const Uri& uri) -> Status {
        if (file == nullptr) return NullArgument();
        auto writer = std::make_unique<Writer>();
        Status result = Create(&nodes, uri, &writer->file);
        if (result.ok()) file->plugin_file = writer.release();
        return result;
      });
}

void NewAppendableFile(const TF_Filesystem* filesystem, const char* path, TF_WritableFile* file,
                       TF_Status* status) {
  RunOnPath<std::unique_lock>(
      filesystem, path, status, [&](Nodes& nodes, const Uri& uri) -> Status {
        if (file == nullptr) return NullArgument();
        auto writer = std::make_unique<Writer>();
        Status result = FindFile(nodes, uri, &writer->file);
        if (!result.ok()) result = Create(&nodes, uri, &writer->file);
        if (result.ok()) file->plugin_file = writer.release();
        return result;
      });
}

void CreateDir(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  RunOnPath<std::unique_lock>(filesystem, path, status,
                              [](Nodes& nodes, const Uri& uri) -> Status {
                                if (Find(nodes, uri) != nullptr) return AlreadyExists(uri.name);
                                return Insert(&nodes, uri, nullptr);
                              });
}

void DeleteFile(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  RunOnPath<std::unique_lock>(filesystem, path, status,
                              [](Nodes& nodes, const Uri& uri) -> Status {
                                const auto node = nodes.find(uri.name);
                                if (node == nodes.end()) {
                                  return uri.IsRoot() ? IsADirectory(uri.name)
                                                      : Missing(nodes, uri);
                                }
                                if (node->second == nullptr) return IsADirectory(uri.name);
                                nodes.erase(node);
                                return {};
                              });
}

void DeleteDir(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  RunOnPath<std::unique_lock>(filesystem, path, status,
                              [](Nodes& nodes, const Uri& uri) -> Status {
                                Status result = RequireDir(nodes, uri);
                                if (!result.ok()) return result;
                                bool empty = true;
                                ForEachChild(nodes, uri, [&](std::string_view) {
                                  empty = false;
                                  return false;
                                });
                                if (!empty) return NotEmpty(uri.name);
                                const auto node = nodes.find(uri.name);
                                if (node != nodes.end()) nodes.erase(node);
                                return {};
                              });
}

void PathExists(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  RunOnPath<std::shared_lock>(filesystem, path, status,
                              [](const Nodes& nodes, const Uri& uri) -> Status {
                                return Find(nodes, uri) != nullptr ? Status{}
                                                                   : Missing(nodes, uri);
                              });
}

void Stat(const TF_Filesystem* filesystem, const char* path, TF_FileStatistics* stats,
          TF_Status* status) {
  RunOnPath<std::shared_lock>(
      filesystem, path, status, [&](const Nodes& nodes, const Uri& uri) -> Status {
        if (stats == nullptr) return NullArgument();
        const FilePtr* node = Find(nodes, uri);
        if (node == nullptr) return Missing(nodes, uri);
        stats->mtime_nsec = 0;
        stats->is_directory = *node == nullptr;
        if (stats->is_directory) {
          stats->length = 0;
        } else {
          const std::shared_lock<std::shared_mutex> lock((*node)->mutex);
          stats->length = static_cast<int64_t>((*node)->bytes.size());
        }
        return {};
      });
}

char* TranslateName(const TF_Filesystem*, const char* argument) {
  // Null would abort the process, so it is the answer only without any memory left.
  try {
    const std::string_view name(argument == nullptr ? "" : argument);
    const size_t path = PathStart(name);
    if (IsCanonical(name.substr(path))) {
      return MakeCString(name == kEmptyHostRoot ? "/" : name).release();
    }
    const std::string clean = Canonical(name, path);
    return MakeCString(clean == kEmptyHostRoot ? "/" : clean).release();
  } catch (...) {
    return nullptr;
  }
}

int GetChildren(const TF_Filesystem* filesystem, const char* path, char*** entries,
                TF_Status* status) {
  int count = -1;
  RunOnPath<std::shared_lock>(
      filesystem, path, status, [&](const Nodes& nodes, const Uri& uri) -> Status {
        if (entries == nullptr) return NullArgument();
        Status result = RequireDir(nodes, uri);
        if (!result.ok()) return result;
        std::vector<CString> names;
        ForEachChild(nodes, uri, [&](std::string_view name) {
          names.push_back(MakeCString(name));
          return true;
        });
        auto** array = static_cast<char**>(Allocate(names.size() * sizeof(char*)));
        if (array == nullptr) throw std::bad_alloc();
        for (size_t i = 0; i < names.size(); ++i) array[i] = names[i].release();
        *entries = array;
        count = static_cast<int>(names.size());
        return {};
      });
  return count;
}

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
  ops.scheme = MakeCString(kScheme).release();

  ops.random_access_file_ops = NewTable<TF_RandomAccessFileOps>();
  ops.random_access_file_ops->cleanup = CleanupReader;
  ops.random_access_file_ops->read = Read;

  ops.writable_file_ops = NewTable<TF_WritableFileOps>();
  ops.writable_file_ops->cleanup = CleanupWriter;
  ops.writable_file_ops->append = Append;
  ops.writable_file_ops->tell = Tell;
  ops.writable_file_ops->flush = Flush;
  ops.writable_file_ops->sync = Flush;
  ops.writable_file_ops->close = Close;

  ops.filesystem_ops = NewTable<TF_FilesystemOps>();
  ops.filesystem_ops->init = Init;
  ops.filesystem_ops->cleanup = Cleanup;
  ops.filesystem_ops->new_random_access_file = NewRandomAccessFile;
  ops.filesystem_ops->new_writable_file = NewWritableFile;
  ops.filesystem_ops->new_appendable_file = NewAppendableFile;
  ops.filesystem_ops->create_dir = CreateDir;
  ops.filesystem_ops->delete_file = DeleteFile;
  ops.filesystem_ops->delete_dir = DeleteDir;
  ops.filesystem_ops->path_exists = PathExists;
  ops.filesystem_ops->stat = Stat;
  ops.filesystem_ops->translate_name = TranslateName;
  ops.filesystem_ops->get_children = GetChildren;
}
