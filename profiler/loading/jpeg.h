// Decoding of JPEG images by libjpeg-turbo, if the program was built with it.
#pragma once

#include <string_view>
#include <vector>

#include "sim/base/result.h"

namespace rehearse::loading {

bool decodes_jpeg();  ///< whether the program was built with libjpeg

/// Whether the bytes begin like a JPEG image.
bool is_jpeg(std::string_view bytes);

/// Decodes the whole image, row by row, into `pixels`, whose memory is reused for the next image:
/// RGB, grey as RGB, CMYK unchanged. Fails with libjpeg's message on an image that is damaged or
/// truncated, and on one with more than 2^28 samples or 500 scans. REQUIRES: decodes_jpeg().
Status decode_jpeg(std::string_view bytes, std::vector<unsigned char>& pixels);

}  // namespace rehearse::loading
