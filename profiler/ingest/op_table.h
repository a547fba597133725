// Reader of op tables: a CSV file with one row per operation of a rank, for recorders without a format
// of their own. docs/formats/inputs.md has the columns.
#pragma once

#include <string_view>

#include "profiler/ingest/byte_source.h"
#include "profiler/ingest/new_rank.h"
#include "sim/base/result.h"

namespace rehearse::ingest {

/// Whether a text begins with the heading of an op table.
bool looks_like_op_table(std::string_view begin);

/// Reads a table; `name` is the file in messages. Each rank becomes a recording without host: its
/// operations are device ops, and its steps are marks on a thread that is not replayed. Fails on the
/// first wrong cell, with its line and column.
Status read_op_table(ByteSource& source, const std::string& name, const NewRank& new_rank);

}  // namespace rehearse::ingest
