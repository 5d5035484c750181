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
//
// Here are the tables for TensorFlow; the headers beside this are for this file only.

#include <cstdlib>

#include "tensorflow/c/experimental/filesystem/filesystem_interface.h"

#include "files.h"
#include "filesystem.h"
#include "host_memory.h"
#include "names.h"

namespace {

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
