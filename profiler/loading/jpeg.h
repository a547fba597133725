// Decoding of JPEG images, by libjpeg-turbo where the program was built with it.
#pragma once

#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace rehearse::loading {

bool decodes_jpeg();  ///< whether the program was built with libjpeg

/// By how it begins.
bool is_jpeg(std::string_view bytes);

/// Decodes the whole image into `pixels`, row by row, which is kept for the next: RGB, grey as RGB,
/// CMYK as it is. Fails with the words of libjpeg on an image that is damaged or ends too early,
/// and on one of more than 2^28 samples or 500 scans. REQUIRES: decodes_jpeg().
Status decode_jpeg(std::string_view bytes, std::vector<unsigned char>& pixels);

}  // namespace rehearse::loading
