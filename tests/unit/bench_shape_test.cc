// Shapes: by rule, from files, the usual ones.
#include <catch2/catch.hpp>

#include "profiler/bench/random_data.h"
#include "profiler/bench/session.h"
#include "profiler/bench/shape.h"
#include "profiler/bench/shape_file.h"
#include "sim/base/file.h"
#include "tests/support/data.h"

namespace rehearse::bench {
namespace {

std::filesystem::path file(const std::string& name, const std::string& text) {
  const std::filesystem::path path = test::scratch_folder() / name;
  Result<PendingFile> pending = PendingFile::create(path);
  REQUIRE(pending);
  REQUIRE(pending->write(text));
  REQUIRE(pending->commit());
  return path;
}

std::string problem_of(const std::string& name, const std::string& text) {
  const auto shapes = read_shapes(file(name, text));
  REQUIRE_FALSE(shapes);
  std::string all = to_string(shapes.error());
  return all.substr(all.find(name));
}

TEST_CASE("a shape follows its rule, and is read back as written") {
  const Result<Shape> shape = make_shape("gemm", {{"m", 8}, {"k", 4}, {"n", 2}});
  REQUIRE(shape);
  CHECK(shape->text() == "m=8 n=2 k=4 batch=1");
  CHECK(shape->dtype == "bf16");
  CHECK(shape->layout == "nt");
  CHECK(shape->epilogue == "none");
  CHECK((*shape)["k"] == 4);
  CHECK(flops_of(*shape).flop() == 2 * 8 * 2 * 4);
  CHECK(bytes_of(*shape).b() == 2 * (8 * 4 + 4 * 2 + 8 * 2));
  CHECK(*parse_shape("gemm", shape->text(), "bf16", "nt", "none") == *shape);
  for (const Shape& each : default_shapes()) {
    const Result<Shape> again =
        parse_shape(each.op, each.text(), each.dtype, each.layout, each.epilogue);
    REQUIRE(again);
    CHECK(*again == each);
  }
}

TEST_CASE("work and bytes of each operation, by hand") {
  const auto of = [](std::string_view op, const NamedExtents& extents, std::string_view dtype,
                     std::string_view layout = {}) {
    const Result<Shape> shape = make_shape(op, extents, dtype, layout);
    INFO((shape ? "" : to_string(shape.error())));
    REQUIRE(shape);
    return std::pair(flops_of(*shape).flop(), bytes_of(*shape).b());
  };
  CHECK(of("conv",
           {{"images", 2},
            {"channels", 4},
            {"height", 6},
            {"width", 5},
            {"filters", 8},
            {"filter_height", 3},
            {"filter_width", 3},
            {"stride", 2},
            {"padding", 1},
            {"groups", 2}},
           "fp16") ==
        std::pair(2. * 2 * 3 * 3 * 8 * 2 * 9, 2. * (2 * 4 * 30 + 8 * 2 * 9 + 2 * 8 * 9)));
  const NamedExtents attention = {
      {"batch", 2}, {"heads", 3}, {"queries", 16}, {"keys", 32}, {"head_size", 8}};
  CHECK(of("attention", attention, "bf16", "full") ==
        std::pair(4. * 6 * 16 * 32 * 8, 2. * 6 * 8 * (32 + 64)));
  CHECK(of("attention", attention, "bf16", "causal").first == 2. * 6 * 16 * 32 * 8);
  CHECK(of("elementwise", {{"elements", 100}}, "fp32").second == 4 * 300);
  CHECK(of("elementwise", {{"elements", 100}, {"inputs", 1}}, "bf16").second == 2 * 200);
  CHECK(of("softmax", {{"rows", 10}, {"width", 7}}, "bf16").second == 2 * 140);
  CHECK(of("reduction", {{"rows", 10}, {"width", 7}}, "fp32").second == 4 * 80);
  CHECK(of("copy", {{"bytes", 10}}, {}, "d2d").second == 20);
  CHECK(of("copy", {{"bytes", 10}}, {}, "h2d_pinned").second == 10);
}

TEST_CASE("an invalid shape is refused with a remedy") {
  const auto problem = [](std::string_view op, const NamedExtents& extents,
                          std::string_view dtype = {}, std::string_view layout = {},
                          std::string_view epilogue = {}) {
    const Result<Shape> shape = make_shape(op, extents, dtype, layout, epilogue);
    REQUIRE_FALSE(shape);
    return to_string(shape.error());
  };
  const NamedExtents product = {{"m", 1}, {"n", 1}, {"k", 1}};
  CHECK(problem("gem", product).find("did you mean 'gemm'?") != std::string::npos);
  CHECK(problem("gemm", {{"m", 1}, {"n", 1}}) == "k: gemm needs it; a whole number above zero");
  CHECK(problem("gemm", {{"m", 0}, {"n", 1}, {"k", 1}}).find("m: 0 is out of range") == 0);
  CHECK(problem("gemm", {{"m", 1}, {"n", 1}, {"k", 1}, {"l", 1}}).find("no such extent") !=
        std::string::npos);
  CHECK(problem("gemm", product, "bf61").find("did you mean 'bf16'?") != std::string::npos);
  CHECK(problem("gemm", product, "", "nhwc").find("layout: 'nhwc'") == 0);
  CHECK(problem("gemm", product, "", "", "swish").find("epilogue: 'swish'") == 0);
  CHECK(problem("gemm", product, "fp8", "tn").find("'nt' alone") != std::string::npos);
  CHECK(problem("norm", {{"rows", 1}, {"width", 1}}, "", "nt").find("norm has no layout") !=
        std::string::npos);
  CHECK(problem("copy", {{"bytes", std::uint64_t{1} << 60}})
            .find("larger than the memory of any device") != std::string::npos);
  CHECK(problem("gemm", {{"m", 1ULL << 40}, {"n", 1ULL << 40}, {"k", 1}})
            .find("larger than the memory of any device") != std::string::npos);
  const auto conv = [](std::uint64_t side, std::uint64_t filter, std::uint64_t groups) {
    return NamedExtents{
        {"images", 1},  {"channels", 4},           {"height", side},         {"width", side},
        {"filters", 8}, {"filter_height", filter}, {"filter_width", filter}, {"groups", groups}};
  };
  CHECK(problem("conv", conv(2, 3, 1)).find("larger than the padded image") != std::string::npos);
  CHECK(problem("conv", conv(8, 3, 3)).find("groups do not divide") != std::string::npos);
}

TEST_CASE("a table of shapes is read, with defaults") {
  const auto shapes = read_shapes(file("shapes.csv",
                                       "op,m,n,k,batch,rows,width,dtype,layout\n"
                                       "gemm,128,256,512,,,,fp16,nn\n"
                                       "softmax,,,,,64,1024,,\n"
                                       "gemm,128,256,512,,,,fp16,nn\n"));
  REQUIRE(shapes);
  REQUIRE(shapes->size() == 2);  // one appears twice
  CHECK((*shapes)[0].text() == "m=128 n=256 k=512 batch=1");
  CHECK((*shapes)[0].layout == "nn");
  CHECK((*shapes)[1].text() == "rows=64 width=1024");
  CHECK((*shapes)[1].dtype == "bf16");
}

TEST_CASE("a sweep is every combination of its lists") {
  const auto shapes = read_shapes(file("shapes.yaml",
                                       "shapes:\n"
                                       "  - {op: gemm, m: [1, 2, 4], n: 8, k: [16, 32],\n"
                                       "     dtype: [bf16, fp16]}\n"
                                       "  - {op: set, bytes: 4096}\n"));
  INFO((shapes ? "" : to_string(shapes.error())));
  REQUIRE(shapes);
  CHECK(shapes->size() == 3 * 2 * 2 + 1);
  CHECK(shapes->back().text() == "bytes=4096");
}

TEST_CASE("all mistakes in files are reported at their places") {
  CHECK(problem_of("a.csv", "op,m,n\ngemm,1,2\nnorm,1,2\n").find("a.csv:2: op: k: gemm needs it") ==
        0);
  CHECK(problem_of("b.csv", "op,rows,width\nnorm,1.5,2\nnorm,1,-2\n").find("b.csv:2") == 0);
  CHECK(problem_of("c.csv", "kind,rows\nnorm,1\n").find("op") != std::string::npos);
  CHECK(problem_of("d.csv", "op,rows,width\n").find("has no shape") != std::string::npos);
  CHECK(problem_of("e.yaml", "shapes:\n  - {op: norm, rows: 4, widht: 8}\n")
            .find("did you mean 'width'?") != std::string::npos);
  CHECK(problem_of("f.yaml", "shape:\n  - {op: norm}\n").find("f.yaml") == 0);
  CHECK(problem_of("g.yaml", "shapes:\n  - {op: norn, rows: 4}\n").find("'norm'?") !=
        std::string::npos);
  CHECK(problem_of("h.yaml", "shapes:\n  - {op: norm, rows: -4, width: 8}\n")
            .find("-4 is not an extent") != std::string::npos);
  std::string many = "shapes:\n  - {op: gemm, k: 1";
  for (const char* extent : {"m", "n"}) {
    many += fmt::format(", {}: [", extent);
    for (int i = 1; i <= 120; ++i) many += fmt::format("{}{}", i > 1 ? "," : "", i);
    many += "]";
  }
  CHECK(problem_of("i.yaml", many + "}\n").find("more than 10,000 shapes") != std::string::npos);
  CHECK_FALSE(read_shapes("/nowhere/shapes.yaml"));
}

TEST_CASE("the usual shapes are many, distinct, and take minutes, not hours") {
  const std::vector<Shape> all = default_shapes();
  for (std::size_t f = 0; f < kFamilies; ++f)
    CHECK(std::count_if(all.begin(), all.end(), [&](const Shape& shape) {
            return shape.rule().family == static_cast<Family>(f);
          }) >= 10);
  CHECK(estimated_time(all) > Seconds::s(30));
  CHECK(estimated_time(all) < Seconds::s(300));
}

TEST_CASE("operands are numbers between -1 and 1, none of them not a number") {
  const std::vector<unsigned char>& floats = random_block("fp32");
  double sum = 0, squares = 0;
  const auto count = static_cast<double>(floats.size() / 4);
  for (std::size_t at = 0; at < floats.size(); at += 4) {
    float value = 0;
    std::memcpy(&value, floats.data() + at, 4);
    REQUIRE(std::abs(value) <= 1);
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  CHECK(std::abs(sum / count) < 0.01);
  CHECK(squares / count == Approx(1.0 / 3).epsilon(0.01));
  // Sign, exponent below that of 2, so below 2 and finite.
  const auto wide = [](std::string_view dtype, std::uint16_t most) {
    const std::vector<unsigned char>& block = random_block(dtype);
    bool bounded = true;
    for (std::size_t at = 0; at < block.size(); at += 2) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, block.data() + at, 2);
      bounded = bounded && (bits & 0x7fff) <= most;
    }
    return bounded;
  };
  CHECK(wide("bf16", 0x3f80));
  CHECK(wide("fp16", 0x3c00));
  const std::vector<unsigned char>& small = random_block("fp8");
  CHECK(
      std::all_of(small.begin(), small.end(), [](unsigned char b) { return (b & 0x7f) <= 0x38; }));
}

}  // namespace
}  // namespace rehearse::bench
