// Errors as values, and the boundary to the host, which no exception passes.

#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "tensorflow/c/tf_status.h"

namespace {

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

}  // namespace
