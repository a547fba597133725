// What loading files costs: images that libjpeg made here, damaged ones, and a prediction
// compared with what threads really do.
#include <cmath>
#include <fstream>

#include <catch2/catch.hpp>

#include "profiler/loading/measure.h"

#ifdef REHEARSE_JPEG
#include <cstdio>
#include <cstdlib>

#include <jpeglib.h>
#endif

#include "cli/commands/input_measured.h"
#include "models/input/read_pipeline.h"
#include "models/input/simulate.h"
#include "profiler/loading/jpeg.h"
#include "tests/support/data.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using namespace loading;

void put(const fs::path& path, const std::string& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

input::Pipeline pipeline_of(const Measured& measured) {
  const Result<YamlFile> file = YamlFile::parse(cli::pipeline_text(measured, "x"), "x");
  REQUIRE(file);
  input::Pipeline pipeline = input::read_pipeline(file->root());
  INFO((file->status() ? "" : to_string(file->status().error())));
  REQUIRE(file->status());
  return pipeline;
}

TEST_CASE("loading: files of any kind are read, spread over the folder recursively") {
  const fs::path folder = test::scratch_folder() / "files";
  for (int i = 0; i < 40; ++i)
    put(folder / (i % 2 ? "a" : "b") / std::to_string(i), std::string(1000 + i, 'x'));
  put(folder / "empty", "");
  const Result<Measured> measured = measure_folder(folder, 10);
  INFO((measured ? "" : to_string(measured.error())));
  REQUIRE(measured);
  CHECK(measured->files == 41);
  CHECK(measured->bytes.b() == 40 * 1000 + 39 * 20);
  CHECK(measured->sampled.size() == 10);
  CHECK(measured->jpegs == 0);
  CHECK(measured->damaged.empty());
  CHECK(measured->sizes.size() == 10);
  CHECK(measured->cold.size() <= 10);
  CHECK(measured->loaded > 0);
  CHECK(measured->loaded <= 1);
  CHECK(measured->cores.cores >= 1);
  CHECK(measured->cores.threads >= measured->cores.cores);
  for (const Seconds read : measured->read) CHECK(read > Seconds::s(0));
  const input::Pipeline pipeline = pipeline_of(*measured);
  CHECK(pipeline.samples == 41);
  CHECK(pipeline.stages.front().workers == measured->cores.threads);
  CHECK(pipeline.stages.front().time.samples.size() == 10);
}

TEST_CASE("loading: an empty folder is refused") {
  const fs::path empty = test::scratch_folder() / "empty";
  fs::create_directories(empty);
  CHECK_THAT(to_string(measure_folder(empty, 10).error()), Catch::Contains("contains no files"));
  CHECK_THAT(to_string(measure_folder(empty / "none", 10).error()),
             Catch::Contains("cannot be listed"));
}

#ifdef REHEARSE_JPEG

/// A picture that is neither flat nor noise.
std::string jpeg_of(unsigned width, unsigned height, unsigned seed, bool grey = false) {
  jpeg_compress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg.err = jpeg_std_error(&errors);
  jpeg_create_compress(&jpeg);
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&jpeg, &bytes, &size);
  jpeg.image_width = width;
  jpeg.image_height = height;
  jpeg.input_components = grey ? 1 : 3;
  jpeg.in_color_space = grey ? JCS_GRAYSCALE : JCS_RGB;
  jpeg_set_defaults(&jpeg);
  jpeg_set_quality(&jpeg, 85, TRUE);
  jpeg_start_compress(&jpeg, TRUE);
  std::vector<unsigned char> row(std::size_t{width} * jpeg.input_components);
  while (jpeg.next_scanline < height) {
    for (std::size_t x = 0; x < row.size(); ++x) {
      seed = seed * 1664525U + 1013904223U;
      row[x] = static_cast<unsigned char>(
          128 + 90 * std::sin(0.02 * static_cast<double>(x) * (1 + jpeg.next_scanline % 7)) +
          (seed >> 28));
    }
    JSAMPROW at = row.data();
    jpeg_write_scanlines(&jpeg, &at, 1);
  }
  jpeg_finish_compress(&jpeg);
  jpeg_destroy_compress(&jpeg);
  std::string text(reinterpret_cast<char*>(bytes), size);
  std::free(bytes);
  return text;
}

fs::path images(int count, unsigned side) {
  const fs::path folder = test::scratch_folder() / "images";
  for (int i = 0; i < count; ++i)
    put(folder / (std::to_string(100 + i) + ".jpg"),
        jpeg_of(side + 8 * (i % 5), side, static_cast<unsigned>(i)));
  return folder;
}

TEST_CASE("loading: images are decoded whole, grey ones as three colours") {
  std::vector<unsigned char> pixels;
  const std::string image = jpeg_of(64, 48, 1);
  REQUIRE(is_jpeg(image));
  REQUIRE(decode_jpeg(image, pixels));
  CHECK(pixels.size() == 64 * 48 * 3);
  REQUIRE(decode_jpeg(jpeg_of(10, 10, 1, true), pixels));
  CHECK(pixels.size() == 10 * 10 * 3);
  CHECK_FALSE(is_jpeg("PNG"));
  CHECK_FALSE(is_jpeg(""));
}

TEST_CASE("loading: a damaged image is an error wherever it is damaged") {
  const std::string image = jpeg_of(64, 64, 7);
  std::vector<unsigned char> pixels;
  for (std::size_t keep = 3; keep + 2 < image.size(); keep += 1 + image.size() / 60) {
    INFO(keep);
    CHECK_FALSE(decode_jpeg(image.substr(0, keep), pixels));
  }
  // Bytes that are something else: an error or another picture, and no crash.
  unsigned seed = 1;
  for (int i = 0; i < 300; ++i) {
    std::string other = image;
    for (int k = 0; k < 4; ++k) {
      seed = seed * 1664525U + 1013904223U;
      other[seed % other.size()] = static_cast<char>(seed >> 24);
    }
    static_cast<void>(decode_jpeg(other, pixels));
  }
  // It goes on afterwards.
  CHECK(decode_jpeg(image, pixels));
}

TEST_CASE("loading: damaged images are counted and named") {
  const fs::path folder = images(6, 64);
  put(folder / "104.jpg", jpeg_of(64, 64, 7).substr(0, 600));
  const Result<Measured> measured = measure_folder(folder, 100);
  REQUIRE(measured);
  CHECK(measured->files == 6);
  CHECK(measured->jpegs == 5);
  REQUIRE(measured->damaged.size() == 1);
  CHECK_THAT(measured->damaged[0].path, Catch::EndsWith("104.jpg"));
  CHECK_FALSE(measured->damaged[0].words.empty());
  for (const Seconds decode : measured->decode) CHECK(decode > Seconds::s(0));
  const fs::path broken = test::scratch_folder() / "broken";
  put(broken / "a.jpg", "\xff\xd8\xff\xe0 nothing");
  CHECK_THAT(to_string(measure_folder(broken, 5).error()), Catch::Contains("damaged"));
}

/// Of a pipeline in memory.
double predicted_rate(const input::Pipeline& pipeline, unsigned workers) {
  const Result<input::Flow> flow = input::simulate(cli::with_workers(pipeline, workers, true));
  REQUIRE(flow);
  return flow->units_per_s.value;
}

TEST_CASE("loading: the rate of several threads is within a quarter of the prediction from one") {
  const fs::path folder = images(24, 160);
  // Machines are busy with other things: by the clock where the threads had their cores to
  // themselves, else by the time that they had. A pair that was disturbed is measured again.
  struct Compared {
    double predicted, ran;
    bool by_clock;
  };
  const auto compare = [&](unsigned threads) -> Compared {
    const Result<Measured> measured = measure_folder(folder, 24);
    REQUIRE(measured);
    REQUIRE(measured->jpegs == 24);
    const double predicted = predicted_rate(pipeline_of(*measured), threads);
    const Run run = run_threads(measured->sampled, threads, 20 * threads);
    CHECK(run.files == 24 * 20 * threads);
    const bool by_clock = run.on_cores > run.wall * (0.95 * threads);
    return {predicted, by_clock ? run.per_s() : run.per_s_undisturbed(threads), by_clock};
  };
  const unsigned all = std::min(cores_here().threads, 4U);
  for (unsigned threads = 1; threads <= all; threads *= 2) {
    double ratio = 0;
    bool near = false;
    for (int attempt = 0; attempt < 6 && !near; ++attempt) {
      const Compared c = compare(threads);
      ratio = c.ran / c.predicted;
      near = ratio > 0.75 && ratio < 1.33;
      UNSCOPED_INFO(threads << " threads: predicted " << c.predicted << " files/s, ran " << c.ran
                            << (c.by_clock ? " by the clock" : " by their time on cores"));
    }
    CHECK(near);
  }
}

TEST_CASE("loading: a prediction from other work is wrong") {
  const fs::path small = images(12, 80);
  Result<Measured> measured = measure_folder(small, 12);
  REQUIRE(measured);
  // Of images with nine times as many pixels.
  const fs::path large = test::scratch_folder() / "large";
  for (int i = 0; i < 12; ++i)
    put(large / (std::to_string(i) + ".jpg"), jpeg_of(240, 240, static_cast<unsigned>(i)));
  const Result<Measured> of_large = measure_folder(large, 12);
  REQUIRE(of_large);
  const Run run = run_threads(of_large->sampled, 1, 10);
  CHECK(run.per_s_undisturbed(1) < 0.5 * predicted_rate(pipeline_of(*measured), 1));
}

#else

TEST_CASE("loading: without libjpeg an image is one clear error") {
  const fs::path folder = test::scratch_folder() / "images";
  put(folder / "a.jpg", "\xff\xd8\xff\xe0");
  CHECK_THAT(to_string(measure_folder(folder, 5).error()),
             Catch::Contains("built without libjpeg") && Catch::Contains("libjpeg62-turbo-dev"));
}

#endif

}  // namespace
}  // namespace rehearse
