// The vocabulary of Kineto traces: the fields, categories and names of events, in every dialect.
#pragma once

#include <string_view>

#include "profiler/trace/trace.h"

namespace rehearse::ingest::kineto {

/// The used fields of one event, as in the file.
struct Event {
  std::string_view phase, category, name, process, thread, start, duration, id;
  // args
  std::string_view correlation, stream, device, bytes, grid, block, registers, shared_memory;
  std::string_view sequence, forward_thread, record_function, shapes, types;
  std::string_view collective, elements_in, elements_out, group_size, dtype, group, group_ranks;
  std::string_view sync_kind, wait_on_stream, event_correlation;
};

using Field = std::string_view Event::*;
/// The field with this key of an event or of its args; null if it is not used.
Field field_named(std::string_view key);
Field argument_named(std::string_view key);

enum class Kind {
  kOperator,
  kRuntime,
  kDriver,
  kAnnotation,
  kFrame,
  kOverhead,
  kKernel,
  kCopy,
  kSet,
  kSync,
  kFlow,
  kSpan,     // the profiler's own span: says nothing about the job
  kIgnored,  // known, and of no use here
  kUnknown,
};

Kind kind_of(std::string_view category);

/// Whether an operator is a range: in the 2021 dialect, ranges of the framework are among the
/// operators.
bool names_a_range(std::string_view name);

/// "Memcpy HtoD (Pageable -> Device)": the direction, and the memory of the host side.
void parse_copy_name(std::string_view name, trace::GpuOp& op);

}  // namespace rehearse::ingest::kineto
