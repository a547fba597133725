#include "tests/validation/studies/model_graph.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>

#include "sim/base/csv.h"
#include "tests/validation/studies/inflate.h"

namespace rehearse::cli {
namespace {

using workload::Op;
using workload::OpKind;
using Shape = std::vector<double>;

constexpr double kFloat = 4;

/// The innermost lists of "[[8, 512], [1]]", and of "(8, 512)" as one.
std::vector<Shape> shapes_in(std::string_view text) {
  std::vector<Shape> shapes;
  Shape current;
  double value = -1;
  const auto end_number = [&] {
    if (value >= 0) current.push_back(value);
    value = -1;
  };
  for (const char c : text) {
    if (std::isdigit(static_cast<unsigned char>(c))) {
      value = (value < 0 ? 0 : value * 10) + (c - '0');
      continue;
    }
    end_number();
    if (c != ']' && c != ')') continue;
    if (!current.empty()) shapes.push_back(std::move(current));
    current.clear();
  }
  return shapes;
}

double elements(const Shape& shape) {
  double product = 1;
  for (const double extent : shape) product *= extent;
  return product;
}

/// Whether a name has a number between dots: "bert.encoder.layer.0.output".
bool names_layer(std::string_view text) {
  for (std::size_t i = 0; i + 1 < text.size(); ++i) {
    if (text[i] != '.' || !std::isdigit(static_cast<unsigned char>(text[i + 1]))) continue;
    std::size_t end = i + 1;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
    if (end == text.size() || text[end] == '.' || text[end] == '\'') return true;
  }
  return false;
}

Op moving(OpKind kind, double moved, double width = 0) {
  return {.name = "",
          .kind = kind,
          .dtype = workload::Dtype::kFp32,
          .bytes = Bytes::b(moved * kFloat),
          .width = width};
}

Op product(double batch, double m, double n, double k) {
  return {.name = "",
          .kind = OpKind::kGemm,
          .dtype = workload::Dtype::kFp32,
          .batch = batch,
          .m = m,
          .n = n,
          .k = k};
}

/// A row of the table.
struct Node {
  std::string_view op, target, type, dtype;
  std::vector<Shape> inputs;
  std::vector<bool> contiguous;
  Shape output;

  bool is(std::string_view name) const { return target.find(name) != std::string_view::npos; }
  bool module(std::string_view name) const {
    return op == "call_module" && type.find(name) != std::string_view::npos;
  }
  double out() const { return elements(output); }
  /// Elements that a kernel with these inputs reads: one element counts for nothing.
  double read() const {
    double sum = 0;
    for (const Shape& s : inputs)
      if (const double e = elements(s); e > 1) sum += e;
    return sum;
  }
};

/// What the kernels of a node are, forward and backward.
class Kernels {
 public:
  Kernels(ModelGraph& graph, const ModelGraphRequest& request) : graph_(graph), request_(request) {}

  void add(const Node& node, double times) {
    times_ = times;
    if (node.module("linear.Linear")) return linear(node);
    if (node.is("method addmm")) return addmm(node);
    if (node.is("method matmul") || node.is("method bmm") || node.is("method baddbmm"))
      return matmul(node);
    if (node.module("Embedding") || node.is("function embedding")) return embedding(node);
    if (node.module("LayerNorm")) return norm(node);
    if (node.is("function softmax")) return softmax(node);
    if (node.module("Dropout") || node.is("function dropout")) return dropout(node);
    if (is_free(node)) return;
    elementwise(node);
  }

 private:
  static bool is_free(const Node& node) {
    if (node.op == "placeholder" || node.op == "output" || node.op == "get_attr") return true;
    if (node.out() <= 1) return true;
    if (node.dtype != "torch.float32") return true;  // masks and indices
    for (const std::string_view copy : {"contiguous", "reshape"})
      if (node.target == copy) return node.contiguous.empty() || node.contiguous.front();
    for (const std::string_view view :
         {"view", "permute", "transpose", "expand", "split", "unsqueeze", "squeeze", "size", "to",
          "type", "type_as", "dim", "chunk", "detach", "float"})
      if (node.target == view) return true;
    return node.is("getitem") || node.is("getattr");
  }

  void forward(Op op) { put(graph_.forward, op); }
  void backward(Op op) {
    if (request_.training) put(graph_.backward, op);
  }
  void put(std::vector<Op>& ops, const Op& op) {
    for (double i = 0; i < times_; ++i) ops.push_back(op);
  }
  void moved(double elements) { forward(moving(OpKind::kElementwise, elements)); }
  void moved_back(double elements) { backward(moving(OpKind::kElementwise, elements)); }

  void multiply(double batch, double m, double n, double k) {
    forward(product(batch, m, n, k));
    backward(product(batch, m, k, n));  // gradient of the left operand
    backward(product(batch, k, n, m));  // and of the right
  }
  double scaled(double x) const { return x * request_.batch; }

  void linear(const Node& node) {
    const double n = node.output.back(), k = node.inputs.front().back();
    multiply(1, scaled(node.out() / n), n, k);
    // The bias: in the product's end, and a sum over rows in its gradient; the weight's gradient
    // is written anew and added to none.
    moved_back(scaled(node.out()));
  }
  void addmm(const Node& node) {
    if (node.inputs.size() < 3) return;
    const Shape& left = node.inputs[1];
    multiply(1, scaled(left[0]), node.inputs[2].back(), left.back());
    moved_back(scaled(node.out()));
  }
  void matmul(const Node& node) {
    if (node.inputs.size() < 2 || node.inputs[0].size() < 2) return;
    const Shape& left = node.inputs[node.inputs.size() - 2];
    const double m = left[left.size() - 2], k = left.back(), n = node.output.back();
    const double batch = scaled(node.out() / (m * n));
    // Of four extents, batches are merged into one, which copies what is not contiguous.
    if (node.output.size() > 3)
      for (std::size_t i = 0; i < node.inputs.size() && i < node.contiguous.size(); ++i)
        if (!node.contiguous[i] && node.inputs[i].front() * request_.batch > 1) {
          moved(2 * scaled(elements(node.inputs[i])));
          moved_back(2 * scaled(elements(node.inputs[i])));
        }
    multiply(batch, m, n, k);
  }
  void embedding(const Node& node) {
    moved(2 * scaled(node.out()));
    moved_back(3 * scaled(node.out()));
  }
  void norm(const Node& node) {
    const double width = node.output.back();
    forward(moving(OpKind::kNorm, 2 * scaled(node.out()), width));
    // Gradient and input are read for the gradient of the input and again for those of the weights.
    backward(moving(OpKind::kNorm, 3 * scaled(node.out()), width));
    moved_back(2 * scaled(node.out()));
  }
  void softmax(const Node& node) {
    const double width = node.output.back();
    forward(moving(OpKind::kSoftmax, 2 * scaled(node.out()), width));
    backward(moving(OpKind::kSoftmax, 3 * scaled(node.out()), width));
  }
  void dropout(const Node& node) {
    if (!request_.training) return;
    constexpr double kMask = 0.25;  // a byte of four
    moved((2 + kMask) * scaled(node.out()));
    moved_back((2 + kMask) * scaled(node.out()));
  }
  void elementwise(const Node& node) {
    moved(scaled(std::max(node.read(), node.out()) + node.out()));
    if (node.target == "contiguous" || node.target == "reshape") {
      moved_back(2 * scaled(node.out()));
      return;
    }
    // Gradients of sums are passed on as they are; a product of two tensors has two.
    std::size_t tensors = 0;
    for (const Shape& s : node.inputs) tensors += elements(s) >= node.out();
    if (node.is("function add") || node.is("function sub")) return;
    if (node.is("function mul") && tensors == 2) {
      moved_back(3 * scaled(node.out()));
      moved_back(3 * scaled(node.out()));
    } else if (node.is("method pow")) {
      // x^(c-1), times c, times the gradient.
      moved_back(2 * scaled(node.out()));
      moved_back(2 * scaled(node.out()));
      moved_back(3 * scaled(node.out()));
    } else if (node.is("tanh") || node.is("gelu") || node.module("activation")) {
      moved_back(3 * scaled(node.out()));
    } else {
      moved_back(2 * scaled(node.out()));
    }
  }

  ModelGraph& graph_;
  const ModelGraphRequest& request_;
  double times_ = 1;
};

}  // namespace

Result<ModelGraph> read_model_graph(const std::filesystem::path& path,
                                    const ModelGraphRequest& request) {
  const std::string text = TRY(read_inflated(path));
  const CsvTable table = TRY(CsvTable::parse(text, path.string()));
  TRY(table.require({"op", "target", "type", "meta", "input_shapes", "input_contiguous",
                     "output_shape", "dtype"}));
  ModelGraph graph;
  Kernels kernels(graph, request);
  for (std::size_t r = 0; r < table.rows(); ++r) {
    Node node{.op = table.cell(r, "op"),
              .target = table.cell(r, "target"),
              .type = table.cell(r, "type"),
              .dtype = table.cell(r, "dtype"),
              .inputs = shapes_in(table.cell(r, "input_shapes")),
              .contiguous = {},
              .output = {}};
    const std::string_view meta = table.cell(r, "meta");
    // The type of a module is the last entry of its stack of modules, where it has no column of its own.
    if (node.type.empty() && node.op == "call_module")
      if (const std::size_t at = meta.rfind("<class "); at != std::string_view::npos)
        node.type = meta.substr(at);
    std::string_view flags = table.cell(r, "input_contiguous");
    while (true) {
      const std::size_t at = flags.find_first_of("TF");
      if (at == std::string_view::npos) break;
      node.contiguous.push_back(flags[at] == 'T');
      flags.remove_prefix(at + 1);
    }
    const std::vector<Shape> output = shapes_in(table.cell(r, "output_shape"));
    if (output.empty()) continue;
    node.output = output.front();
    const bool layer = names_layer(node.target) || names_layer(meta);
    kernels.add(node, layer ? request.layers : 1);
  }
  return graph;
}

}  // namespace rehearse::cli
