// Dataflows: operations on symbolic extents, passes, time and memory.
#include <catch2/catch.hpp>
#include <fmt/format.h>

#include "models/compute/op_cost.h"
#include "models/dataflow/passes.h"
#include "models/dataflow/read_dataflow.h"
#include "sim/base/yaml.h"
#include "tests/support/data.h"
#include "tests/support/rehearse.h"

namespace rehearse::dataflow {
namespace {

Result<DataflowJob> parse(const std::string& text) {
  const YamlFile file = *YamlFile::parse(text, "flow.yaml");
  return read_dataflow(file.root(), ".");
}

DataflowJob read(const std::string& text) {
  Result<DataflowJob> job = parse(text);
  INFO((job ? "" : to_string(job.error())));
  REQUIRE(job);
  return std::move(*job);
}

Run run_of(const DataflowJob& job) { return *run(job.flow, job.device, job.host); }

/// One layer of attention without its scores: 4 nodes, 12 edges, widths 8 and 2.
std::string messages(const std::string& passes, const std::string& settings = "") {
  return fmt::format(R"(
device: v100_sxm2_16
passes: {}
{}
symbols: {{N: 4, E: 12, F: 8, G: 2, D: 3}}
indices: {{src: {{rows: E, of: N}}, dst: {{rows: E, of: N}}}}
inputs: {{h: [N, F]}}
weights: {{w: [F, G]}}
operations:
  - {{result: h_src, op: gather, of: h, by: src}}
  - {{result: m, op: matmul, of: [h_src, w]}}
  - {{result: r, op: elementwise, of: m}}
  - {{result: sum, op: segment_reduce, of: r, by: dst, groups: D}}
result: sum
)",
                     passes, settings);
}

std::vector<double> bytes_in(const DataflowJob& job) {
  std::vector<double> bytes;
  for (const Operation& op : job.flow.operations)
    bytes.push_back(bytes_of(job.flow, op, Bytes::b(0)).b());
  return bytes;
}

std::vector<double> flops_in(const DataflowJob& job) {
  std::vector<double> flops;
  for (const Operation& op : job.flow.operations) flops.push_back(flops_of(job.flow, op).flop());
  return flops;
}

TEST_CASE("bytes and FLOPs of operations follow from their extents", "[dataflow]") {
  const DataflowJob job = read(messages("[compile]"));
  // A value of 4 bytes, an entry of an index of 8.
  // gather:  a row of 8 for each of 12 edges, read and written, and 12 entries  2·12·8·4 + 12·8 = 864
  // matmul:  [12, 8] · [8, 2]: 12·8·4 + 8·2·4 + 12·2·4 = 544 bytes, 2·12·8·2 = 384 FLOPs
  // relu:    12·2·4 read and written                       192 bytes, 24 FLOPs
  // reduce:  12·2·4 read, 12 entries, 4·2·4 written        224 bytes, 24 FLOPs
  CHECK(bytes_in(job) == std::vector<double>{864, 544, 192, 224});
  CHECK(flops_in(job) == std::vector<double>{0, 384, 24, 24});
  // Along the source each row is read once, and the result is cleared first:
  // 4·8·4 + 12·8 + 2·12·8·4 = 992.
  CHECK(bytes_in(read(messages("[compile]", "gathers: by_source"))).front() == 992);
  // A source that fits in half of the cache is read once: 4·8·4 + 12·8 + 12·8·4 = 608.
  CHECK(bytes_of(job.flow, job.flow.operations[0], Bytes::b(256)).b() == 608);
}

TEST_CASE("memory holds a value from its operation to its last use", "[dataflow]") {
  const DataflowJob job = read(messages("[compile]"));
  const Run run = run_of(job);
  // Always: input 4·8·4 = 128, weight 8·2·4 = 64, two indices 2·12·8 = 192: 384 bytes.
  // h_src 384; h_src and m 480; m and r 192; r and sum 128.
  std::vector<double> live;
  for (const Kernel& kernel : run.kernels) live.push_back(kernel.live.b());
  CHECK(live == std::vector<double>{384 + 384, 384 + 480, 384 + 192, 384 + 128});
  CHECK(run.peak_at == 1);
  CHECK(run.parts.live().b() == 864);
  CHECK(run.peak.value == run.parts.live() + run.parts.context);
  CHECK(run.fit == memory::Fit::kFits);
}

TEST_CASE("a product moves before the gather, and the gather into the reduction", "[dataflow]") {
  // matmul of nodes: 4·8·4 + 64 + 4·2·4 = 224 bytes, 2·4·8·2 = 128 FLOPs; relu of nodes: 64 bytes, 8
  // FLOPs; gather 12·2·4·2 + 96 = 288; reduce as before.
  const DataflowJob reordered = read(messages("[compile, reorder]"));
  CHECK(bytes_in(reordered) == std::vector<double>{224, 64, 288, 224});
  CHECK(flops_in(reordered) == std::vector<double>{128, 8, 0, 24});
  // The reduction reads a row for each of 12 edges, both entries, and writes 4 rows:
  // 12·2·4 + 2·96 + 32 = 320.
  const DataflowJob fused = read(messages("[compile, reorder, fuse]"));
  CHECK(bytes_in(fused) == std::vector<double>{224, 64, 320});
}

TEST_CASE("operations with groups run once for each, after copies of their operands",
          "[dataflow]") {
  const DataflowJob written = read(messages("none"));
  const Run run = run_of(written);
  const Kernel& reduce = run.kernels.back();
  // 3 groups, each with a copy of its rows of r (12·2·4 bytes read and written in all) and a sum.
  CHECK(reduce.kernels == 6);
  CHECK(reduce.bytes.b() == 224 + 192);
  CHECK(reduce.host.value.us() == Approx(6 * 6.5));
  CHECK(run_of(read(messages("compile"))).kernels.back().kernels == 1);
}

TEST_CASE("the device waits for the host, or the host for the device", "[dataflow]") {
  const Run slow = run_of(read(messages("[compile]", "host: {operation: 1 ms, kernel: 0 us}")));
  // Four operations: the last kernel starts after 4 ms, and ends after its own time.
  CHECK(slow.time.value.ms() == Approx(4 + slow.kernels.back().time.value.ms()));
  const Run fast = run_of(read(messages("[compile]", "host: {operation: 0 us, kernel: 0 us}")));
  Seconds sum = Seconds::s(0);
  for (const Kernel& kernel : fast.kernels) sum += kernel.time.value;
  CHECK(fast.time.value.us() == Approx(sum.us()));
  CHECK(fast.waiting.s() == Approx(0).margin(1e-15));
  CHECK(slow.waiting.ms() == Approx(4 + slow.kernels.back().time.value.ms() - sum.ms()));
}

TEST_CASE("kernels have the times of the laws of operations", "[dataflow]") {
  const Run run = run_of(read(messages("[compile]")));
  const auto cost = compute::OpCost::on("v100_sxm2_16", {});
  using workload::Dtype, workload::OpKind;
  CHECK(run.kernels[1].time ==
        cost->predicted(
            {.name = "", .kind = OpKind::kGemm, .dtype = Dtype::kFp32, .m = 12, .n = 2, .k = 8}));
  CHECK(run.kernels[2].time == cost->predicted({.name = "",
                                                .kind = OpKind::kElementwise,
                                                .dtype = Dtype::kFp32,
                                                .bytes = Bytes::b(192)}));
}

/// Products by a matrix for each of R relations, of values of sources.
std::string relational(const std::string& passes, const std::string& pairs, double count,
                       const std::string& settings = "") {
  return fmt::format(R"(
device: v100_sxm2_16
passes: {}
{}
symbols: {{N: 1000, E: 50000, R: 10, P: {}, F: 64, G: 32}}
indices:
  src: {{rows: E, of: N}}
  dst: {{rows: E, of: N}}
  relation: {{rows: E, of: R{}}}
inputs: {{h: [N, F]}}
weights: {{w: [R, F, G]}}
operations:
  - {{result: w_edge, op: gather, of: w, by: relation}}
  - {{result: h_src, op: gather, of: h, by: src}}
  - {{result: z, op: matmul, of: [h_src, w_edge]}}
  - {{result: sum, op: segment_reduce, of: z, by: dst}}
result: sum
)",
                     passes, settings, count, pairs);
}

TEST_CASE("dedupe holds no matrix for each row, and computes each pair once", "[dataflow]") {
  const Run held = run_of(read(relational("[compile]", "", 1)));
  const DataflowJob typed = read(relational("[compile, dedupe]", "", 1));
  // 50,000 matrices of 64 · 32 values are 410 MB.
  CHECK(held.parts.live().b() > 50'000 * 64 * 32 * 4);
  CHECK(run_of(typed).parts.live().b() < 50'000 * 64 * 32);
  REQUIRE(typed.flow.operations.size() == 3);
  CHECK(typed.flow.operations[1].kind == Kind::kSegmented);
  CHECK(flops_of(typed.flow, typed.flow.operations[1]).flop() == 2. * 50'000 * 64 * 32);

  const DataflowJob pairs = read(relational("[compile, dedupe]", ", pairs: {src: P}", 8000));
  // gather to pairs, product of pairs, gather to edges, reduce
  REQUIRE(pairs.flow.operations.size() == 4);
  CHECK(flops_of(pairs.flow, pairs.flow.operations[1]).flop() == 2. * 8000 * 64 * 32);
  CHECK(pairs.flow.result(pairs.flow.operations[2]).extents.front().name == "E");

  // As many pairs as edges: nothing changes.
  const DataflowJob all = read(relational("[compile, dedupe]", ", pairs: {src: P}", 50'000));
  CHECK(bytes_in(all) == bytes_in(typed));
  CHECK(flops_in(all) == flops_in(typed));
  CHECK(run_of(all).time == run_of(typed).time);
  CHECK(run_of(all).peak == run_of(typed).peak);
}

TEST_CASE("segments may each be a kernel, whose results are joined", "[dataflow]") {
  const Run each = run_of(read(relational("[compile, dedupe]", "", 1, "segments: each")));
  const Run together = run_of(read(relational("[compile, dedupe]", "", 1)));
  CHECK(each.kernels[1].kernels == 11);
  CHECK(together.kernels[1].kernels == 1);
  CHECK((each.kernels[1].bytes - together.kernels[1].bytes).b() == 2. * 50'000 * 32 * 4);
  CHECK(each.kernels[1].time.value > together.kernels[1].time.value);
}

TEST_CASE("a long segment is summed row by row", "[dataflow]") {
  const auto with = [](const std::string& longest) {
    std::string text = relational("[compile]", "", 1);
    text.replace(text.find("dst: {rows: E, of: N"), 20, "dst: {rows: E, of: N" + longest);
    return run_of(read(text)).kernels.back().time.value;
  };
  CHECK(with(", longest: 20") == with(""));
  CHECK(with(", longest: 40000").ms() == Approx(40000 * 0.245e-3));  // rows of 128 bytes
}

TEST_CASE("a weight of concatenated values is divided, and weights are combined", "[dataflow]") {
  const DataflowJob job = read(R"(
device: v100_sxm2_16
passes: [reorder]
symbols: {E: 1000, F: 64, G: 32}
inputs: {x: [E, F], y: [E, G]}
weights: {u: [F, G], v: [2 * G, 1]}
operations:
  - {result: p, op: matmul, of: [x, u]}
  - {result: both, op: concatenate, of: [p, y]}
  - {result: score, op: matmul, of: [both, v]}
result: score
)");
  // score = x (u v1) + y v2: u v1 takes 2·64·32 FLOPs, then 2·1000·64, 2·1000·32, and 1000 additions,
  // instead of 2·1000·64·32 and 2·1000·64.
  CHECK(flops_in(job) == std::vector<double>{4096, 128'000, 64'000, 1000});
}

TEST_CASE("a weight is not combined with a matrix for each row", "[dataflow]") {
  const DataflowJob job = read(R"(
device: v100_sxm2_16
passes: [reorder]
symbols: {E: 1000, F: 64, G: 32}
inputs: {x: [E, F]}
weights: {u: [F, G], v: [E, G, 1]}
operations:
  - {result: p, op: matmul, of: [x, u]}
  - {result: score, op: matmul, of: [p, v]}
result: score
)");
  CHECK(flops_in(job) == std::vector<double>{2. * 1000 * 64 * 32, 2. * 1000 * 32});
}

TEST_CASE("types that follow from the source are multiplied before the gather", "[dataflow]") {
  const std::string flow = R"(
device: v100_sxm2_16
passes: [compile, dedupe]
symbols: {N: 100, E: 5000, T: 4, F: 8}
indices:
  src: {rows: E, of: N}
  type: {rows: N, of: T}
  src_type: {via: [src, type]}
inputs: {h: [N, F]}
weights: {w: [T, F, F]}
operations:
  - {result: w_edge, op: gather, of: w, by: src_type}
  - {result: h_src, op: gather, of: h, by: src}
  - {result: z, op: matmul, of: [h_src, w_edge]}
result: z
)";
  const DataflowJob job = read(flow);
  REQUIRE(job.flow.operations.size() == 2);
  CHECK(job.flow.operations[0].kind == Kind::kSegmented);
  CHECK(flops_of(job.flow, job.flow.operations[0]).flop() == 2. * 100 * 8 * 8);
  CHECK(job.flow.operations[1].kind == Kind::kGather);
}

TEST_CASE("gradients of weights follow from the operations", "[dataflow]") {
  const DataflowJob job = read(messages("[compile, differentiate]"));
  // Of the sum: a gather, as before 12·2·4·2 + 96 = 288 bytes. Of relu: reads the gradient and m, 288.
  // Of w: h_srcᵀ times the gradient, 2·12·8·2 FLOPs and 544 bytes. The input needs none.
  CHECK(bytes_in(job) == std::vector<double>{864, 544, 192, 224, 288, 288, 544});
  CHECK(flops_in(job) == std::vector<double>{0, 384, 24, 24, 0, 24, 384});
  REQUIRE(job.flow.results.size() == 2);
  CHECK(job.flow.values[job.flow.results[1]].extents == job.flow.values[1].extents);
  // h_src is needed to the end: 384 + h_src 384 + m 96 + …
  CHECK(run_of(job).parts.live() > run_of(read(messages("[compile]"))).parts.live());
}

Extents result_extents(const DataflowJob& job) {
  return job.flow.values[job.flow.results.front()].extents;
}

TEST_CASE("passes keep the extents of results, and the peak holds every kernel", "[dataflow]") {
  for (const char* model : {"gat", "gat_primitives", "gcn", "rgcn", "rgat", "hgt"}) {
    const auto with = [&](const std::string& passes) {
      const YamlFile file = *YamlFile::parse(
          fmt::format("dataflow: {}.yaml\npasses: {}", model, passes), "flow.yaml");
      Result<DataflowJob> job = read_dataflow(file.root(), test::source_file("examples/dataflows"));
      INFO(model << " " << passes << " " << (job ? "" : to_string(job.error())));
      REQUIRE(job);
      return *job;
    };
    const Extents written = result_extents(with("none"));
    for (const char* passes :
         {"compile", "reorder", "dedupe", "differentiate", "fuse", "'fuse, reorder, dedupe'",
          "'compile, reorder, dedupe, fuse'", "'dedupe, reorder, compile, fuse'",
          "'compile, dedupe, reorder, differentiate, fuse'",
          "'reorder, reorder, dedupe, dedupe'"}) {
      INFO(model << " " << passes);
      const DataflowJob job = with(passes);
      CHECK(result_extents(job) == written);
      const Run run = run_of(job);
      CHECK(run.time.low <= run.time.value);
      CHECK(run.time.value <= run.time.high);
      CHECK(run.waiting >= Seconds::s(-1e-12));
      for (std::size_t i = 0; i < run.kernels.size(); ++i) {
        CHECK(run.parts.live() >= run.kernels[i].live);
        double touched = job.flow.result(job.flow.operations[i]).elements() * 4;
        for (const Operand& operand : job.flow.operations[i].of)
          if (operand != job.flow.operations[i].of.front() || job.flow.operations[i].of.size() == 1)
            touched += job.flow.value(operand).elements() * 4;
        CHECK(run.kernels[i].live.b() >= touched * (1 - 1e-12));
      }
    }
  }
}

TEST_CASE("the order of symbols does not matter, and a file's are completed", "[dataflow]") {
  const std::string text = messages("[compile, reorder, fuse]");
  std::string other = text;
  other.replace(other.find("{N: 4, E: 12, F: 8, G: 2, D: 3}"), 31,
                "{D: 3, G: 2, F: 8, E: 12, N: 4}");
  CHECK(run_of(read(text)).time == run_of(read(other)).time);
  CHECK(run_of(read(text)).peak == run_of(read(other)).peak);
  const YamlFile file =
      *YamlFile::parse("dataflow: gat.yaml\nsymbols: {E: 21112}\nlayers: [{}]\n", "flow.yaml");
  const auto job = read_dataflow(file.root(), test::source_file("examples/dataflows"));
  REQUIRE(job);
  CHECK(job->flow.indices[0].rows.size == 21112);
  CHECK(job->flow.indices[0].of.size == 2708);
}

TEST_CASE("a dataflow that exceeds the memory does not fit", "[dataflow]") {
  const Run run = run_of(read(relational("[compile]", "", 1, "gathers: by_source")));
  CHECK(run.fit == memory::Fit::kFits);
  std::string large = relational("[compile]", "", 1);
  large.replace(large.find("E: 50000"), 8, "E: 5000000");
  CHECK(run_of(read(large)).fit == memory::Fit::kDoesNotFit);  // 41 GB of matrices
  large.replace(large.find("[compile]"), 9, "'compile, dedupe'");
  CHECK(run_of(read(large)).fit == memory::Fit::kFits);
}

std::string error_of(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  text.replace(at, from.size(), to);
  const Result<DataflowJob> job = parse(text);
  REQUIRE_FALSE(job);
  CHECK(job.error().diagnostics.size() == 1);
  return to_string(job.error().diagnostics.front());
}

TEST_CASE("mistakes of a dataflow and of the file below it are reported together", "[dataflow]") {
  const auto below = test::write_scratch("below.yaml",
                                         "device: v100\ninputs: {x: [N, F]}\nresult: y\n"
                                         "operations: [{result: y, op: elementwise, of: x}]\n");
  const YamlFile file = *YamlFile::parse(
      "dataflow: below.yaml\nsymbols: {N: 0, F: 2}\npasses: [fold]\n", "flow.yaml");
  const Result<DataflowJob> job = read_dataflow(file.root(), below.parent_path());
  REQUIRE_FALSE(job);
  std::vector<std::string> keys;
  for (const Diagnostic& d : job.error().diagnostics) keys.push_back(d.key);
  CHECK(keys == std::vector<std::string>{"symbols.N", "passes", "device"});
}

TEST_CASE("mistakes in a dataflow have a place and an expectation", "[dataflow]") {
  const std::string text = messages("[compile]");
  CHECK(error_of(text, "[compile]", "[compil]") ==
        "flow.yaml:3:9: passes: unknown pass 'compil'; did you mean 'compile'?");
  CHECK(error_of(text, "h: [N, F]", "h: [N, Q]") ==
        "flow.yaml:7:13: inputs.h: unknown symbol 'Q'; did you mean 'D'?");
  CHECK(error_of(text, "of: [h_src, w]", "of: [h, m]") ==
        "flow.yaml:11:33: operations[1].of: unknown value 'm'; did you mean 'h'?");
  CHECK(error_of(text, "of: r, by: dst", "of: h, by: dst") ==
        "flow.yaml:13:43: operations[3].of: segment_reduce of h [N, F]; rows E, as dst is from E "
        "to N");
  CHECK(error_of(text, "w: [F, G]", "w: [G, F]") ==
        "flow.yaml:11:33: operations[1].of: matmul of h_src [E, F] and w [G, F]; [E, F] and [F, "
        "G], or "
        "[E, F] and [E, F, G]");
  CHECK(error_of(text, "by: src}", "by: sorc}") ==
        "flow.yaml:10:44: operations[0].by: unknown index 'sorc'; did you mean 'src'?");
  CHECK(error_of(text, "result: m,", "result: h,") ==
        "flow.yaml:11:14: operations[1].result: 'h' is defined twice; a unique name");
  CHECK(error_of(text, "result: sum\n", "result: total\n") ==
        "flow.yaml:14:9: result: unknown value 'total'; one of h, h_src, m, r, sum, w");
  CHECK(error_of(text, "v100_sxm2_16", "v100_sxm2_1") ==
        "flow.yaml:2:9: device: unknown GPU 'v100_sxm2_1'; did you mean 'v100_sxm2_16'?");
  CHECK(error_of(text, "E: 12", "E: 0").starts_with("flow.yaml:5:20: symbols.E: "));
  CHECK(error_of(text, "groups: D}", "group: D}").starts_with("flow.yaml:13:"));
  CHECK(error_of(text, "[compile]", "[compile, reorder, fuse, differentiate]") ==
        "flow.yaml:3:9: passes: differentiate: merged operations have no derivative; differentiate "
        "before fuse");
  CHECK(error_of(text, "result: sum\n", "result: sum\ndataflow: none.yaml\n")
            .starts_with("flow.yaml:15:11: dataflow: 'none.yaml' "));
}

}  // namespace
}  // namespace rehearse::dataflow
