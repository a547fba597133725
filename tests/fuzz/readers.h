// What the fuzzers run: each reader on any bytes, and what must hold of whatever it gives. A fault
// is thrown as such (sim/base/check.h); the tests replay the corpus through the same functions.
#pragma once

#include <span>
#include <string_view>

namespace rehearse::fuzz {

/// As network files of ASTRA-sim; what is read is a cluster of as many devices.
void astra_network(std::string_view bytes);
/// As system files of ASTRA-sim; what is read is within its ranges.
void astra_system(std::string_view bytes);
void budget(std::string_view bytes);
void calibration(std::string_view bytes);
/// The first byte says whether the rest is read as it is, or with its header and checksums put
/// right, so that what the blocks hold is reached.
void capture_file(std::string_view bytes);
void chakra(std::string_view bytes);
/// As the program of a rank, which must keep the invariants of program::Program.
void chakra_job(std::string_view bytes);
void cluster_file(std::string_view bytes);
/// Process groups of a Chakra job.
void comm_groups(std::string_view bytes);
void csv(std::string_view bytes);
/// As the text of each option that has its own form: edits, links, targets.
void edits(std::string_view bytes);
void execution_trace(std::string_view bytes);
/// A recorded graph: the keys that each key reads.
void graph(std::string_view bytes);
/// A store of accepted runs.
void history(std::string_view bytes);
void input(std::string_view bytes);
/// A trace of JAX's profiler.
void jax(std::string_view bytes);
/// A job file, whose other files are absent.
void job(std::string_view bytes);
/// As a table and as YAML; what is read runs on a small fleet.
void job_list(std::string_view bytes);
/// A table of measured jobs; its first rows are read as jobs.
void job_table(std::string_view bytes);
/// A journal of the key "key".
void journal(std::string_view bytes);
void kineto(std::string_view bytes);
/// A recorded stream of keys, through two caches.
void keys(std::string_view bytes);
/// A measured link between ranks.
void link(std::string_view bytes);
/// As the workload of a job and as a config of Hugging Face; what comes out must pass verify().
void model(std::string_view bytes);
void nccl_log(std::string_view bytes);
void nsys(std::string_view bytes);
/// Each rank of an op table is a recording of its own.
void op_table(std::string_view bytes);
/// A set of jobs to pack; small ones are packed.
void pack_file(std::string_view bytes);
/// Two programs and the edit between them.
void pair(std::string_view bytes);
/// A law of pairs as it is shipped; writing and reading it again gives the same law.
void pair_law(std::string_view bytes);
/// An input pipeline; what is read must have bounds, and run or be refused.
void pipeline(std::string_view bytes);
/// As prices, as carbon intensities by the hour, and as lives of instances.
void rented(std::string_view bytes);
/// The result of a serving benchmark.
void serving_result(std::string_view bytes);
/// A trace of requests to a server.
void requests(std::string_view bytes);
/// A table of kernels of rocprofv3, alone.
void rocprof_csv(std::string_view bytes);
/// Each process of its JSON is a recording of its own.
void rocprof_json(std::string_view bytes);
/// As a saved result of any command, and as one of `validate`.
void saved(std::string_view bytes);
/// A job file of a server, whose other files are absent.
void serve(std::string_view bytes);
/// Shapes to measure, as CSV and as YAML; the text of each is read again.
void shapes(std::string_view bytes);
void store(std::string_view bytes);
/// A dataflow; what is read must run.
void dataflow(std::string_view bytes);

/// A study; caches and graphs of its first point are run where they are small, its pipelines read.
void study(std::string_view bytes);

struct Target {
  std::string_view name;  ///< of the folder under tests/fuzz/corpus as well
  void (*run)(std::string_view bytes);
};
std::span<const Target> targets();

}  // namespace rehearse::fuzz
