// Convolutions and pools: shapes, operations, and descriptions that do not fit.
#include <catch2/catch.hpp>

#include "models/workload/convnet.h"

using namespace rehearse;
using namespace rehearse::workload;

namespace {

Piece square(PieceKind kind, std::uint32_t channels, std::uint32_t kernel, std::uint32_t stride,
             std::uint32_t padding) {
  return {.kind = kind,
          .channels = channels,
          .kernel_height = kernel,
          .kernel_width = kernel,
          .stride = stride,
          .padding_height = padding,
          .padding_width = padding};
}

std::string error_of(const ConvNet& net) {
  const Result<Workload> w = convnet(net, {});
  return w ? "no error" : to_string(w.error());
}

}  // namespace

TEST_CASE("a convolution is products of positions, channels out and inputs summed") {
  // 3 x 3 with stride 2 on 8 channels of 9 x 9, padded by 1: 5 x 5 positions of 16 channels, in 4
  // groups: 4 x (25 x 4 x (2 x 9)) products. Its input is the sample's gradient: not needed.
  Piece grouped = square(PieceKind::kConvolution, 16, 3, 2, 1);
  grouped.groups = 4;
  ConvNet net = {.name = "one", .channels = 8, .height = 9, .width = 9, .pieces = {grouped}};
  net.pieces.push_back(grouped);
  const Result<Workload> w = convnet(net, {});
  REQUIRE(w);
  const Op& forward = w->layers[0].forward[0];
  CHECK(flops_of(forward).flop() == 2 * 4 * 25 * 4 * 18.);
  CHECK(w->layers[0].parameters() == 4 * 4 * 18.);
  // Input, output and weights at 2 bytes.
  CHECK(bytes_of(forward).b() == 2 * (8 * 81. + 16 * 25. + 4 * 4 * 18.));
  CHECK(w->layers[0].backward.size() == 1);
  REQUIRE(w->layers[1].backward.size() == 2);
  for (const Op& op : w->layers[1].backward)
    CHECK(flops_of(op).flop() == flops_of(w->layers[1].forward[0]).flop());

  SECTION("more samples move more activations, and the same weights") {
    const Workload many = with_samples(*w, 10);
    CHECK(bytes_of(many.layers[0].forward[0]).b() == 2 * (10 * (8 * 81. + 16 * 25.) + 4 * 4 * 18.));
    CHECK(bytes_of(many.layers[0].backward[0]).b() ==
          2 * (10 * (8 * 81. + 16 * 25.) + 4 * 4 * 18.));
    CHECK(many.model_flops().flop() == Approx(10 * w->model_flops().flop()));
  }
}

TEST_CASE("eager convolutions add their bias, and know where channels are") {
  Piece first = square(PieceKind::kConvolution, 8, 3, 1, 1), second = first;
  first.bias = second.bias = true;
  first.norm = second.norm = first.relu = second.relu = false;
  ConvNet net = {.name = "two", .channels = 3, .height = 4, .width = 4, .pieces = {first, second}};
  const auto moved = [&](const Implementation& how, std::size_t layer, std::string_view name) {
    const Result<Workload> w = convnet(net, how);
    REQUIRE(w);
    double bytes = 0;
    for (const auto* ops : {&w->layers[layer].forward, &w->layers[layer].backward})
      for (const Op& op : *ops)
        if (op.name.starts_with(name)) bytes += op.bytes.b();
    return bytes;
  };
  const double out = 8 * 16.;
  const Implementation tf32 = {.dtype = Dtype::kTf32};
  // Two passes forward and one backward of the result.
  CHECK(moved(tf32, 1, "bias") == 4 * 3 * out);
  CHECK(moved({.dtype = Dtype::kTf32, .elementwise = Elementwise::kCompiled}, 1, "bias") == 0);
  for (const bool last : {false, true}) {
    const Result<Workload> w = convnet(net, {.channels_last = last});
    REQUIRE(w);
    for (const auto* ops : {&w->layers[1].forward, &w->layers[1].backward})
      for (const Op& op : *ops)
        CHECK(op.channels_last == (last && op.kind == OpKind::kConvolution));
    CHECK(has_convolutions(*w));
  }
}

// 2.65 operators per launch, of the 171 of a Llama block: convolution, batch norm and ReLU are three
// launches in eager mode; a compiled layer has one kernel after its convolution.
TEST_CASE("the host launches each kernel of a convolution") {
  Piece piece = square(PieceKind::kConvolution, 8, 3, 1, 1);
  piece.norm = piece.relu = true;
  const ConvNet net = {.name = "one", .channels = 8, .height = 9, .width = 9, .pieces = {piece}};
  CHECK(convnet(net, {}).value().layers[0].host_work == Approx(3 * 2.65 / 171));
  const Result<Workload> compiled = convnet(net, {.elementwise = Elementwise::kCompiled});
  CHECK(compiled.value().layers[0].host_work == Approx(2 * 2.65 / 171));
}

TEST_CASE("pools that round up count partly covered positions") {
  // 3 wide by steps of 2 on 6: 2 positions, 3 when rounded up.
  for (const bool up : {false, true}) {
    Piece pool = square(PieceKind::kMaxPool, 0, 3, 2, 0);
    pool.round_up = up;
    const Result<Workload> w =
        convnet({.name = "pool", .channels = 1, .height = 6, .width = 6, .pieces = {pool}}, {});
    REQUIRE(w);
    CHECK(w->layers[0].output.b() == 2 * (up ? 9 : 4));
  }
}

TEST_CASE("a network that does not fit together is refused at the piece") {
  const Piece three = square(PieceKind::kConvolution, 16, 3, 1, 0);
  ConvNet net = {.name = "net", .channels = 3, .height = 4, .width = 4};
  net.pieces = {three, three};
  CHECK(error_of(net) ==
        "layers[1] of 'net' has no output positions: kernel 3 × 3 on 2 × 2; a kernel within the "
        "padded "
        "input, a stride above zero");
  net.pieces = {three};
  net.pieces[0].groups = 2;
  CHECK(error_of(net) ==
        "layers[0] of 'net' has 2 groups for 3 and 16 channels; a number of groups that divides "
        "both");
  const Piece one = square(PieceKind::kConvolution, 8, 1, 1, 0);
  net.pieces = {three, {.kind = PieceKind::kBranches, .branches = {{}, {one}}, .join = Join::kAdd}};
  CHECK(error_of(net) ==
        "layers[1] of 'net' joins 16 × 2 × 2 and 8 × 2 × 2; branches of one shape");
  net.pieces = {{.kind = PieceKind::kBranches, .branches = {{one}, {one}}}};
  CHECK(error_of(net) ==
        "layers[0] of 'net' branches directly from the sample; a layer in front of branches");
}
