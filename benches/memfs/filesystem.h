// Operations on the filesystem.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"
#include "tensorflow/c/tf_file_statistics.h"
#include "tensorflow/c/tf_status.h"

#include "host_memory.h"
#include "names.h"
#include "nodes.h"
#include "status.h"

namespace {

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

}  // namespace
