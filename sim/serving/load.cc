#include "sim/serving/load.h"

#include <cmath>

#include <fmt/format.h>

#include "sim/base/csv.h"
#include "sim/base/random.h"

namespace rehearse::serving {
namespace {

/// Marsaglia and Tsang, ACM TOMS 26 (2000), for shapes from 1; below, with a power of a uniform
/// number (their section 6). Mean: the shape.
double gamma(Random& random, double shape) {
  if (shape == 1) return random.exponential();
  if (shape < 1) return gamma(random, shape + 1) * std::pow(1 - random.uniform(), 1 / shape);
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), v = std::pow(1 + c * x, 3);
    if (v > 0 && std::log(1 - random.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v))
      return d * v;
  }
}

std::int64_t draw(Random& random, const Lengths& lengths) {
  return lengths.least + static_cast<std::int64_t>(random.below(
                             static_cast<std::uint32_t>(lengths.most - lengths.least + 1)));
}

}  // namespace

std::vector<Request> draw(std::size_t count, const Lengths& input, const Lengths& output,
                          const std::optional<Arrivals>& arrivals, std::uint64_t seed) {
  Random lengths = random_stream(seed, 0), gaps = random_stream(seed, 1);
  std::vector<Request> requests;
  requests.reserve(count);
  double at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (arrivals) at += gamma(gaps, arrivals->shape) / (arrivals->shape * arrivals->rate);
    const std::int64_t prompt = draw(lengths, input);
    requests.push_back({.planned = Picoseconds::from(Seconds::s(at)),
                        .input = prompt,
                        .output = draw(lengths, output)});
  }
  return requests;
}

Result<std::vector<Request>> load_requests(const std::filesystem::path& path) {
  const Result<CsvTable> table = CsvTable::load(path);
  if (!table) return forward(table);
  if (Status ok = table->require({"arrival_s", "input_tokens", "output_tokens"}); !ok)
    return forward(ok);
  std::vector<Request> requests;
  Picoseconds before{0};
  for (std::size_t row = 0; row < table->rows(); ++row) {
    const auto number = [&](std::string_view column, double least, double most) -> Result<double> {
      const Result<std::optional<double>> cell = table->number(row, column);
      if (!cell) return forward(cell);
      if (!*cell || **cell < least || **cell > most)
        return fail(table->problem(row, column,
                                   *cell ? fmt::format("{:g} is out of range", **cell) : "is empty",
                                   fmt::format("{:g} to {:g}", least, most)));
      return **cell;
    };
    const Result<double> arrival = number("arrival_s", 0, 1e6);
    if (!arrival) return forward(arrival);
    const Result<double> input = number("input_tokens", 1, 1e8);
    if (!input) return forward(input);
    const Result<double> output = number("output_tokens", 1, 1e8);
    if (!output) return forward(output);
    Request request{.planned = Picoseconds::from(Seconds::s(*arrival)),
                    .input = std::llround(*input),
                    .output = std::llround(*output)};
    if (request.planned < before)
      return fail(table->problem(row, "arrival_s", "is before the arrival above",
                                 "requests in order of arrival"));
    before = request.planned;
    requests.push_back(std::move(request));
  }
  if (requests.empty())
    return fail(Diagnostic{
        .file = path.string(), .problem = "no requests", .expected = "a line per request"});
  return requests;
}

}  // namespace rehearse::serving
