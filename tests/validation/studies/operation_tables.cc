#include "tests/validation/studies/operation_tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "cli/calibrate/device_names.h"
#include "sim/base/csv.h"
#include "tests/validation/studies/inflate.h"

namespace rehearse::cli {
namespace {

namespace fs = std::filesystem;
using compute::MeasuredOp;
using workload::Dtype;
using workload::Op;
using workload::OpKind;

/// Tables by device and kind, in the order in which they first appear.
class Tables {
 public:
  explicit Tables(std::string source) : source_(std::move(source)) {}

  /// Passes over rows of a device that the catalog does not have.
  void add(std::string_view device, std::string_view kind, MeasuredOp row,
           std::optional<compute::AttentionKernels> kernels = {}) {
    const std::string key = fmt::format("{}\n{}", device, kind);
    auto found = places_.find(key);
    if (found == places_.end()) {
      const Result<const cluster::Gpu*> gpu = device_named(device);
      if (!gpu) return;
      found = places_.emplace(key, tables_.size()).first;
      tables_.push_back({.source = source_,
                         .kind = std::string(kind),
                         .kernels = kernels,
                         .measured = {.facts = compute::facts_of(**gpu), .rows = {}}});
    }
    tables_[found->second].measured.rows.push_back(row);
  }
  std::vector<OperationTable> take() { return std::move(tables_); }

 private:
  std::string source_;
  std::map<std::string, std::size_t> places_;
  std::vector<OperationTable> tables_;
};

Result<double> number_in(const CsvTable& table, std::size_t row, std::string_view column) {
  const std::optional<double> cell = TRY(table.number(row, column));
  if (!cell) return fail(table.problem(row, column, "is empty", "a number"));
  return *cell;
}

/// The cells of a row as numbers; fails on the first that is none.
template <std::size_t N>
Result<std::array<double, N>> numbers(const CsvTable& table, std::size_t row,
                                      const std::array<std::string_view, N>& columns) {
  std::array<double, N> values{};
  for (std::size_t i = 0; i < N; ++i) {
    values[i] = TRY(number_in(table, row, columns[i]));
  }
  return values;
}

Result<CsvTable> load(const fs::path& path) {
  std::string text = TRY(read_inflated(path));
  return CsvTable::parse(text, path.string());
}

std::optional<Dtype> dtype_of(std::string_view name) {
  if (name == "bfloat16" || name == "bf16" || name == "BF16") return Dtype::kBf16;
  if (name == "float16" || name == "fp16" || name == "FP16") return Dtype::kFp16;
  if (name == "fp8" || name == "FP8") return Dtype::kFp8;
  if (name == "float32" || name == "fp32" || name == "FP32") return Dtype::kFp32;
  if (name == "TF32" || name == "tf32") return Dtype::kTf32;
  return std::nullopt;
}

Op product(Dtype dtype, double batch, double m, double n, double k) {
  return {.name = "gemm",
          .kind = OpKind::kGemm,
          .dtype = dtype,
          .batch = batch,
          .m = m,
          .n = n,
          .k = k};
}

// --- DeepBench --------------------------------------------------------------------------------

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  if (line.ends_with('\r')) line.remove_suffix(1);
  while (true) {
    const std::size_t comma = line.find(',');
    cells.push_back(line.substr(0, comma));
    if (comma == std::string_view::npos) return cells;
    line.remove_prefix(comma + 1);
  }
}

std::optional<double> number_in(const std::vector<std::string_view>& cells, std::size_t place) {
  if (place >= cells.size() || cells[place].empty()) return std::nullopt;
  const std::string text(cells[place]);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == '\0' && value > 0 ? std::optional(value) : std::nullopt;
}

/// Where the columns of a section stand.
struct Heading {
  enum class Section { kNone, kProducts, kConvolutions } section = Section::kNone;
  std::map<std::string, std::size_t, std::less<>> places;

  /// The column whose title begins so.
  std::optional<std::size_t> find(std::string_view title) const {
    for (const auto& [name, place] : places)
      if (std::string_view(name).substr(0, title.size()) == title) return place;
    return std::nullopt;
  }
};

Heading heading_of(const std::vector<std::string_view>& cells) {
  Heading heading;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    std::string title;
    for (const char c : cells[i])
      if (c != ' ') title += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (!title.empty()) heading.places.try_emplace(title, i);
  }
  const bool shapes = heading.find("m") && heading.find("n") && heading.find("k");
  if (shapes && heading.find("time(msec)") && heading.places.contains("m"))
    heading.section = Heading::Section::kProducts;
  if (heading.find("forward(msec)") && heading.places.contains("w"))
    heading.section = Heading::Section::kConvolutions;
  return heading;
}

/// A convolution as an implicit product: positions of the result, channels out, inputs summed.
struct Convolution {
  double width, height, channels, images, filters, filter_width, filter_height, out_width,
      out_height;

  Op op(Dtype dtype, double m, double n, double k) const {
    const double elements = images * channels * width * height +
                            filters * channels * filter_width * filter_height +
                            images * filters * out_width * out_height;
    return {.name = "convolution",
            .kind = OpKind::kConvolution,
            .dtype = dtype,
            .m = m,
            .n = n,
            .k = k,
            .bytes = Bytes::b(elements * workload::bytes_of(dtype))};
  }
  double positions() const { return images * out_width * out_height; }
  double summed() const { return channels * filter_width * filter_height; }
};

std::optional<Convolution> convolution_of(const Heading& h,
                                          const std::vector<std::string_view>& cells) {
  const auto at = [&](std::string_view title) -> std::optional<double> {
    const auto place = h.find(title);
    return place ? number_in(cells, *place) : std::nullopt;
  };
  const auto padding = [&](std::string_view title) { return at(title).value_or(0); };
  // The image count is 'N', the channels out 'K'; 'S' is the width of the filter, 'R' its height.
  const auto w = at("w"), hh = at("h"), c = at("c"), n = at("n"), k = at("k"), s = at("s"),
             r = at("r"), vertical = at("vertical"), horizontal = at("horizontal");
  if (!w || !hh || !c || !n || !k || !s || !r || !vertical || !horizontal) return std::nullopt;
  return Convolution{.width = *w,
                     .height = *hh,
                     .channels = *c,
                     .images = *n,
                     .filters = *k,
                     .filter_width = *s,
                     .filter_height = *r,
                     .out_width = std::floor((*w + 2 * padding("pad_w") - *s) / *horizontal) + 1,
                     .out_height = std::floor((*hh + 2 * padding("pad_h") - *r) / *vertical) + 1};
}

/// "NV_P100__Results_FP16_ip_Mixed_math.csv": the device and the format.
std::optional<std::pair<std::string, Dtype>> named_in(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::size_t end = name.find("__Results_");
  if (end == std::string::npos) return std::nullopt;
  std::string device = name.substr(0, end);
  std::replace(device.begin(), device.end(), '_', ' ');
  const std::string_view format = std::string_view(name).substr(end + 10);
  if (format.starts_with("FP32")) return std::pair(device, Dtype::kFp32);
  if (format.starts_with("FP16")) return std::pair(device, Dtype::kFp16);
  return std::nullopt;  // among them FP16 storage with FP32 arithmetic
}

/// "h100_sxm" of "h100_sxm__vllm-0.19.0__gemm.csv.gz".
std::string device_of(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::string device = name.substr(0, name.find("__"));
  return device == "a100_sxm" ? "a100_sxm4_80" : device;  // not the first variant of that name
}

compute::AttentionKernels kernels_of(std::string_view source, std::string_view device) {
  if (source == "torch_flow") return compute::AttentionKernels::kTensorRt;
  const bool asynchronous = device.starts_with("h") || device.starts_with("b") ||
                            device.starts_with("gh") || device.starts_with("gb");
  return asynchronous ? compute::AttentionKernels::kAsynchronous
                      : compute::AttentionKernels::kFlashAttention2;
}

/// How often a call moves its queries, and its keys and values, in addition: vLLM up to 0.14 copies
/// keys and values into its cache, TensorRT-LLM queries too, from one packed operand.
std::pair<double, double> copied_by(const std::string& file) {
  if (file.find("__trtllm") != std::string::npos) return {2, 2};
  const std::size_t version = file.find("__vllm-0.");
  if (version == std::string::npos) return {0, 0};
  return {0, std::atoi(file.c_str() + version + 9) <= 14 ? 2.0 : 0.0};
}

}  // namespace

Result<std::vector<OperationTable>> read_gemm_csv(const fs::path& path) {
  const CsvTable table = TRY(load(path));
  TRY(table.require({"gemm_dtype", "m", "n", "k", "latency"}));
  const bool named = table.has("device");
  std::map<std::tuple<std::string, std::string, double, double, double>, std::vector<double>> rows;
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const auto cells = TRY(numbers<4>(table, r, {"m", "n", "k", "latency"}));
    const auto [m, n, k, time] = cells;
    rows[{named ? std::string(table.cell(r, "device")) : device_of(path),
          std::string(table.cell(r, "gemm_dtype")), m, n, k}]
        .push_back(time);
  }
  Tables tables(path.filename().string());
  for (auto& [key, times] : rows) {
    const auto& [device, format, m, n, k] = key;
    const std::optional<Dtype> dtype = dtype_of(format);
    if (!dtype) continue;
    std::sort(times.begin(), times.end());
    tables.add(device, to_string(*dtype),
               {product(*dtype, 1, m, n, k), Seconds::ms(times[times.size() / 2])});
  }
  return tables.take();
}

Result<std::vector<OperationTable>> read_kernel_csv(const fs::path& path) {
  const CsvTable table = TRY(load(path));
  TRY(table.require({"OPName", "Latency", "Device", "B"}));
  const bool products = table.has("M");
  TRY(products ? table.require({"M", "N", "K"}) : table.require({"H"}));
  Tables tables(path.filename().string());
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const std::string_view name = table.cell(r, "OPName");
    const double time = TRY(number_in(table, r, "Latency"));
    Op op{.name = "", .kind = OpKind::kElementwise, .dtype = Dtype::kFp32};
    std::string_view kind = "elementwise";
    if (products) {
      const auto cells = TRY(numbers<4>(table, r, {"B", "M", "N", "K"}));
      // The grids of the kernels say which is which: N is summed over, K counts columns.
      const auto [batch, m, k, n] = cells;
      op = product(Dtype::kFp32, batch, m, n, k);
      kind = name;
    } else {
      const auto cells = TRY(numbers<2>(table, r, {"B", "H"}));
      const auto [rows, width] = cells;
      const bool two =
          name == "add" || name == "mul" || name == "div" || name == "pow" || name == "sub";
      op.bytes = Bytes::b(4 * rows * width * (two ? 3 : 2));
      op.width = width;
      if (name == "ln" || name == "softmax") {
        op.kind = name == "ln" ? OpKind::kNorm : OpKind::kSoftmax;
        kind = name == "ln" ? "norm" : "softmax";
      }
    }
    tables.add(table.cell(r, "Device"), kind, {op, Seconds::ms(time)});
  }
  return tables.take();
}

Result<std::vector<OperationTable>> read_deepbench_csv(const fs::path& path) {
  const auto named = named_in(path);
  if (!named) return std::vector<OperationTable>{};
  const auto& [device, dtype] = *named;
  const std::string text = TRY(read_inflated(path));
  Tables tables(path.filename().string());
  Heading heading;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::size_t end = rest.find('\n');
    const auto cells = cells_of(rest.substr(0, end));
    rest = end == std::string_view::npos ? std::string_view{} : rest.substr(end + 1);
    // A line whose third cell is no number begins a section or separates two.
    if (!number_in(cells, 2)) {
      const Heading next = heading_of(cells);
      if (next.section != Heading::Section::kNone || !cells[0].empty()) heading = next;
      continue;
    }
    const auto add = [&, &device = device](std::string_view kind, const Op& op,
                                           std::optional<double> ms) {
      if (ms) tables.add(device, kind, {op, Seconds::ms(*ms)});
    };
    if (heading.section == Heading::Section::kProducts) {
      const auto m = number_in(cells, heading.places.at("m")),
                 n = number_in(cells, heading.places.at("n")),
                 k = number_in(cells, heading.places.at("k"));
      if (!m || !n || !k) continue;
      // Columns first: M counts features, N samples.
      add("gemm", product(dtype, 1, *n, *m, *k), number_in(cells, *heading.find("time(msec)")));
    } else if (heading.section == Heading::Section::kConvolutions) {
      const auto c = convolution_of(heading, cells);
      if (!c || c->out_width < 1 || c->out_height < 1) continue;
      const double positions = c->positions(), summed = c->summed();
      const std::size_t forward_at = *heading.find("forward(msec)");
      const std::tuple<std::string_view, Op, std::size_t> ways[] = {
          {"convolution", c->op(dtype, positions, c->filters, summed), forward_at},
          {"convolution, gradient of inputs", c->op(dtype, positions, summed, c->filters),
           forward_at + 1},
          {"convolution, gradient of weights", c->op(dtype, c->filters, summed, positions),
           forward_at + 2}};
      for (const auto& [kind, extents, place] : ways) {
        Op op = extents;
        op.name = kind;
        op.weight_gradient = kind.ends_with("weights");
        add(kind, op, number_in(cells, place));
      }
    }
  }
  return tables.take();
}

Result<std::vector<OperationTable>> read_attention_csv(const fs::path& path) {
  const CsvTable table = TRY(load(path));
  TRY(table.require(
      {"kernel_source", "batch_size", "num_heads", "num_key_value_heads", "latency"}));
  const bool decode = table.has("step");
  const std::string_view length = decode ? "step" : "isl";
  TRY(table.require({length}));
  const std::string file = path.filename().string(), device = device_of(path);
  const auto [query_copies, key_copies] = decode ? std::pair(0.0, 0.0) : copied_by(file);
  const auto differs = [&](std::size_t r, std::string_view column, std::string_view usual) {
    return table.has(column) && table.cell(r, column) != usual;
  };
  Tables tables(path.filename().string());
  for (std::size_t r = 0; r < table.rows(); ++r) {
    if (differs(r, "window_size", "0") || differs(r, "attn_dtype", "bfloat16") ||
        differs(r, "kv_cache_dtype", "bfloat16"))
      continue;
    const auto cells = TRY(numbers<5>(
        table, r, {"batch_size", length, "num_heads", "num_key_value_heads", "latency"}));
    const auto [samples, tokens, heads, kv_heads, time] = cells;
    double size = 128;
    if (table.has("head_dim")) {
      size = TRY(number_in(table, r, "head_dim"));
    }
    const std::string_view source = table.cell(r, "kernel_source");
    Op op{.name = "attention",
          .kind = OpKind::kAttention,
          .dtype = Dtype::kBf16,
          .batch = samples * kv_heads,
          .m = heads / kv_heads * (decode ? 1 : tokens),
          .n = decode ? tokens + 1 : tokens,
          .k = size,
          .causal = !decode};
    op.bytes = Bytes::b(workload::bytes_of(op.dtype) * op.batch * op.k *
                        (query_copies * op.m + 2 * key_copies * op.n));
    tables.add(device, fmt::format("{}, {}", decode ? "decoding" : "attention", source),
               {op, Seconds::ms(time)}, kernels_of(source, device));
  }
  return tables.take();
}

Result<std::vector<OperationTable>> read_matmul_csv(const fs::path& path) {
  const CsvTable table = TRY(load(path));
  TRY(table.require({"dtype", "accelerator", "mamf_tflops", "best_shape_mnk"}));
  Tables tables(path.filename().string());
  for (std::size_t r = 0; r < table.rows(); ++r) {
    const std::string_view device = table.cell(r, "accelerator");
    if (!device_named(device)) continue;
    const std::optional<Dtype> dtype = dtype_of(table.cell(r, "dtype"));
    if (!dtype) return fail(table.problem(r, "dtype", "is no format", "such as BF16"));
    const double rate = TRY(number_in(table, r, "mamf_tflops"));
    double m = 0, n = 0, k = 0;
    const std::string shape(table.cell(r, "best_shape_mnk"));
    if (std::sscanf(shape.c_str(), "%lfx%lfx%lf", &m, &n, &k) != 3 || !(rate > 0))
      return fail(table.problem(r, "best_shape_mnk", "is no shape", "such as 4096x4096x4096"));
    const Op op = product(*dtype, 1, m, n, k);
    tables.add(device, fmt::format("{}, {}", to_string(*dtype), kBestOfSearch),
               {op, workload::flops_of(op) / FlopRate::tflop_per_s(rate)});
  }
  return tables.take();
}

}  // namespace rehearse::cli
