// Recordings of random perceptrons, whose layers and times are known, lifted.
#include <random>

#include <catch2/catch.hpp>

#include "models/workload/lift.h"
#include "tests/support/lift_builder.h"

namespace rehearse::workload {
namespace {

using test::StepBuilder;

struct Perceptron {
  trace::Trace trace;
  double samples = 0, rows = 0;
  std::vector<double> widths;                   ///< layer i takes widths[i], gives widths[i + 1]
  std::vector<double> forward_us, backward_us;  ///< of the step of median time
  double parameters = 0;
  bool activated = true;  ///< between all of its linears
};

Perceptron random_perceptron(std::mt19937& random) {
  const auto pick = [&](int low, int high) {
    return static_cast<double>(std::uniform_int_distribution<int>(low, high)(random));
  };
  Perceptron p;
  p.samples = pick(2, 9);
  p.rows = pick(1, 5);
  const int layers = static_cast<int>(pick(1, 6));
  for (int i = 0; i <= layers; ++i) p.widths.push_back(16 * pick(1, 4));
  for (int i = 0; i < layers; ++i) p.parameters += (p.widths[i] + 1) * p.widths[i + 1];
  const bool numbered = pick(0, 1) == 1;
  // What follows each linear: nothing, or an operator of its own.
  std::vector<std::string> then;
  for (int i = 0; i < layers; ++i)
    then.push_back(
        std::vector<std::string>{"", "relu_", "gelu"}[static_cast<std::size_t>(pick(0, 2))]);
  for (int i = 0; i + 1 < layers; ++i) p.activated = p.activated && !then[i].empty();
  std::vector<double> times;
  for (int i = 0; i < 5 * layers; ++i) times.push_back(pick(1, 50));

  StepBuilder b(p.trace);
  std::uint32_t sequence = 1;
  const int steps = 3;
  for (int s = 0; s < steps; ++s) {
    const double more = s == 0 ? 0 : s == 1 ? 1 : 2;  // the second step is the median
    b.begin_step();
    const std::uint32_t first = sequence;
    p.forward_us.assign(static_cast<std::size_t>(layers), 0);
    p.backward_us = p.forward_us;
    for (int i = 0; i < layers; ++i) {
      const double in = p.widths[i], out = p.widths[i + 1];
      b.forward("aten::linear",
                fmt::format("[[{}, {}, {}], [{}, {}], [{}]]", p.samples, p.rows, in, out, in, out),
                times[5 * i] + more, sequence++);
      p.forward_us[i] = times[5 * i] + 1;
      if (!then[i].empty()) {
        b.forward("aten::" + then[i], fmt::format("[[{}, {}, {}]]", p.samples, p.rows, out),
                  times[5 * i + 1], sequence++);
        p.forward_us[i] += times[5 * i + 1];
      }
    }
    std::uint32_t at = sequence;
    const double m = p.samples * p.rows;
    for (int i = layers; i-- > 0;) {
      const double in = p.widths[i], out = p.widths[i + 1];
      const auto number = [&] {
        --at;
        return numbered ? std::optional(at) : std::nullopt;
      };
      if (!then[i].empty()) {
        b.backward(then[i] == "gelu" ? "GeluBackward0" : "ReluBackward0", number(), [&] {
          b.op("aten::threshold_backward", fmt::format("[[{}, {}, {}]]", p.samples, p.rows, out),
               times[5 * i + 2], StepBuilder::kAutograd);
        });
        // Elementwise work without a number cannot be distinguished from that of the next layer.
        (numbered ? p.backward_us[i] : p.backward_us[std::min(i + 1, layers - 1)]) +=
            times[5 * i + 2];
      }
      b.backward("AddmmBackward0", number(), [&] {
        b.op("aten::mm", fmt::format("[[{}, {}], [{}, {}]]", m, out, out, in), times[5 * i + 3],
             StepBuilder::kAutograd);
        b.op("aten::mm", fmt::format("[[{}, {}], [{}, {}]]", out, m, m, in), times[5 * i + 4],
             StepBuilder::kAutograd);
        p.backward_us[i] += times[5 * i + 3] + times[5 * i + 4];
      });
      b.gradient(fmt::format("[{}]", out));
      b.gradient(fmt::format("[{}, {}]", out, in));
    }
    REQUIRE(at == first);
    b.op("aten::_foreach_add_", "[[1]]", 3);
    b.end_step();
    b.wait(20);
  }
  return p;
}

double us(const std::vector<Op>& ops) {
  double sum = 0;
  for (const Op& op : ops) sum += op.measured->value.us();
  return sum;
}

TEST_CASE("random perceptrons are lifted to their layers") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    const Perceptron p = random_perceptron(random);
    INFO("round " << round);
    const Result<Lifted> lifted = lift(p.trace, {});
    INFO((lifted ? "" : to_string(lifted.error())));
    REQUIRE(lifted);
    const Workload& w = lifted->workload;
    CHECK(lifted->step_name == "ProfilerStep#2");
    CHECK(w.samples == p.samples);
    CHECK(w.parameters() == p.parameters);
    REQUIRE(w.layers.size() == p.forward_us.size());
    double flops = 0;
    int columns = 0, rows = 0;
    for (std::size_t i = 0; i < w.layers.size(); ++i) {
      const Layer& layer = w.layers[i];
      CHECK(us(layer.forward) == Approx(p.forward_us[i]));
      CHECK(us(layer.backward) == Approx(p.backward_us[i]));
      const double one = 2 * p.samples * p.rows * p.widths[i] * p.widths[i + 1];
      double of_layer = 0;
      for (const auto* ops : {&layer.forward, &layer.backward})
        for (const Op& op : *ops) of_layer += flops_of(op).flop();
      CHECK(of_layer == Approx(3 * one));
      flops += of_layer;
      columns += layer.forward[0].tensor == Extent::kN;
      rows += layer.forward[0].tensor == Extent::kK;
    }
    // Two square linears with nothing between may be a chain, or take one input both: a recording
    // does not name tensors. With activations between, each column has its row.
    if (p.activated) CHECK(columns == rows);
    CHECK((columns > 0) == (rows > 0));
    // All that is computed is computed on samples.
    CHECK(with_samples(w, 3 * p.samples).model_flops().flop() == Approx(3 * flops));
    const DeviceTime& d = lifted->device;
    CHECK(d.busy == d.layers);
    double measured = 0;
    for (const Layer& layer : w.layers)
      measured += us(layer.forward) + us(layer.backward) + us(layer.step);
    CHECK(measured == Approx(d.busy.seconds().us()));
  }
}

}  // namespace
}  // namespace rehearse::workload
