#include "profiler/loading/jpeg.h"

#ifdef REHEARSE_JPEG
#include <csetjmp>
#include <cstdio>

#include <jpeglib.h>
#endif

namespace rehearse::loading {

bool is_jpeg(std::string_view bytes) { return bytes.starts_with("\xff\xd8\xff"); }

#ifdef REHEARSE_JPEG
namespace {

constexpr std::size_t kMostSamples = std::size_t{1} << 28;
constexpr int kMostScans = 500;

/// libjpeg reports fatal errors by longjmp: no object on the way may have a destructor.
struct Decoder {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg_progress_mgr progress;
  std::jmp_buf leave;
  char words[JMSG_LENGTH_MAX];
  bool damaged;  // it continued with made-up data
};

Decoder& of(j_common_ptr jpeg) { return *static_cast<Decoder*>(jpeg->client_data); }

[[noreturn]] void leave(j_common_ptr jpeg) {
  jpeg->err->format_message(jpeg, of(jpeg).words);
  std::longjmp(of(jpeg).leave, 1);
}

void heed(j_common_ptr jpeg, int level) {
  if (level >= 0 || of(jpeg).damaged) return;
  jpeg->err->format_message(jpeg, of(jpeg).words);
  of(jpeg).damaged = true;
}

void count_scans(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number <= kMostScans) return;
  std::snprintf(of(jpeg).words, sizeof of(jpeg).words, "more than %d scans", kMostScans);
  std::longjmp(of(jpeg).leave, 1);
}

/// Up to the size of the image: false where libjpeg left.
bool begin(Decoder& decoder, std::string_view bytes) {
  if (setjmp(decoder.leave) != 0) return false;
  jpeg_create_decompress(&decoder.jpeg);
  decoder.jpeg.client_data = &decoder;
  decoder.jpeg.progress = &decoder.progress;
  jpeg_mem_src(&decoder.jpeg, reinterpret_cast<const unsigned char*>(bytes.data()),
               static_cast<unsigned long>(bytes.size()));
  jpeg_read_header(&decoder.jpeg, TRUE);
  const J_COLOR_SPACE space = decoder.jpeg.jpeg_color_space;
  decoder.jpeg.out_color_space = space == JCS_CMYK || space == JCS_YCCK ? JCS_CMYK : JCS_RGB;
  jpeg_calc_output_dimensions(&decoder.jpeg);
  return true;
}

bool read_rows(Decoder& decoder, unsigned char* pixels, std::size_t row_bytes) {
  if (setjmp(decoder.leave) != 0) return false;
  jpeg_start_decompress(&decoder.jpeg);
  while (decoder.jpeg.output_scanline < decoder.jpeg.output_height) {
    JSAMPROW row = pixels + decoder.jpeg.output_scanline * row_bytes;
    jpeg_read_scanlines(&decoder.jpeg, &row, 1);
  }
  jpeg_finish_decompress(&decoder.jpeg);
  return true;
}

}  // namespace

bool decodes_jpeg() { return true; }

Status decode_jpeg(std::string_view bytes, std::vector<unsigned char>& pixels) {
  Decoder decoder{};
  decoder.jpeg.err = jpeg_std_error(&decoder.errors);
  decoder.jpeg.client_data = &decoder;
  decoder.errors.error_exit = leave;
  decoder.errors.emit_message = heed;
  decoder.progress.progress_monitor = count_scans;
  bool whole = begin(decoder, bytes);
  if (whole) {
    const std::size_t row_bytes =
        std::size_t{decoder.jpeg.output_width} * decoder.jpeg.output_components;
    if (row_bytes * decoder.jpeg.output_height > kMostSamples) {
      std::snprintf(decoder.words, sizeof decoder.words, "%u x %u pixels",
                    decoder.jpeg.output_width, decoder.jpeg.output_height);
      whole = false;
    } else {
      pixels.resize(row_bytes * decoder.jpeg.output_height);
      whole = read_rows(decoder, pixels.data(), row_bytes);
    }
  }
  jpeg_destroy_decompress(&decoder.jpeg);
  if (!whole || decoder.damaged) return fail(decoder.words);
  return {};
}

#else

bool decodes_jpeg() { return false; }

Status decode_jpeg(std::string_view, std::vector<unsigned char>&) {
  return fail("the program was built without libjpeg");
}

#endif

}  // namespace rehearse::loading
