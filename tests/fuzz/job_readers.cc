// Readers of jobs and servers, of tables of jobs, and of what is measured or requested.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "cli/config/job_file.h"
#include "cli/config/request_trace.h"
#include "cli/config/serve_file.h"
#include "cli/validation/job_rows.h"
#include "cli/validation/serving_results.h"
#include "profiler/bench/shape_file.h"
#include "sim/base/csv.h"
#include "tests/fuzz/errors.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/readers.h"

namespace rehearse::fuzz {
namespace {

void check_job(const Result<cli::JobFile>& job) {
  if (!job) return check_error_without_file(job.error());
  const double batch = job->spec.training.global_batch;
  REHEARSE_CHECK(batch > 0 && std::isfinite(batch), "{}", batch);
  REHEARSE_CHECK(!job->cluster.devices().empty() && !job->spec.workload.layers.empty());
  REHEARSE_CHECK(workload::verify(job->spec.workload));
}

}  // namespace

void job(std::string_view bytes) {
  const Result<YamlFile> file = YamlFile::parse(std::string(bytes), kName);
  if (!file) return check_error(file.error());
  check_job(cli::read_job(file->root(), "/absent"));
}

void job_table(std::string_view bytes) {
  const Result<CsvTable> table = CsvTable::parse(bytes, kName);
  if (!table) return check_error(table.error());
  cli::JobRows rows(*table);
  std::vector<std::string> unknown;
  for (std::size_t row = 0; row < std::min<std::size_t>(table->rows(), 4); ++row)
    check_job(rows.job(row, unknown));
}

void requests(std::string_view bytes) {
  const MemoryFile file(bytes);
  const Result<cli::RequestTrace> read = cli::load_requests(file.path());
  if (!read) return check_error(read.error());
  REHEARSE_CHECK(!read->requests.empty(), "a silent zero");
  Picoseconds last(0);
  for (const serving::Request& request : read->requests) {
    REHEARSE_CHECK(request.input >= 1 && request.output >= 1);
    if (request.follows)
      continue;  // a turn is after the one before it, and may be after later requests
    REHEARSE_CHECK(request.planned >= last);
    last = request.planned;
  }
}

void serving_result(std::string_view bytes) {
  const MemoryFile file(bytes, ".json");
  for (const std::size_t line : {0, 2}) {
    const auto cells = cli::serving_result(file.path(), line);
    if (!cells)
      check_error(cells.error());
    else
      REHEARSE_CHECK(cells->contains("ttft_s") && cells->contains("serve.load.input"));
  }
}

void serve(std::string_view bytes) {
  const Result<YamlFile> file = YamlFile::parse(std::string(bytes), kName);
  if (!file) return check_error(file.error());
  const Result<cli::ServeFile> read = cli::read_serve(file->root(), "/absent");
  if (!read) return check_error_without_file(read.error());
  REHEARSE_CHECK(!read->requests.empty() && read->devices >= 1, "a silent zero");
  for (const serving::Request& request : read->requests)
    REHEARSE_CHECK(request.planned >= Picoseconds(0) && request.input >= 1 && request.output >= 1);
}

void shapes(std::string_view bytes) {
  for (const char* extension : {".csv", ".yaml"}) {
    const MemoryFile file(bytes, extension);
    const Result<std::vector<bench::Shape>> read = bench::read_shapes(file.path());
    if (!read) {
      check_error(read.error());
      continue;
    }
    REHEARSE_CHECK(!read->empty(), "a silent zero");
    for (const bench::Shape& shape : *read) {
      const double flops = bench::flops_of(shape).flop(), moved = bench::bytes_of(shape).b();
      REHEARSE_CHECK(flops >= 0 && std::isfinite(flops) && moved > 0 && std::isfinite(moved), "{}",
                     shape.text());
      const auto again =
          bench::parse_shape(shape.op, shape.text(), shape.dtype, shape.layout, shape.epilogue);
      REHEARSE_CHECK(again && *again == shape, "{}", shape.text());
    }
  }
}

}  // namespace rehearse::fuzz
