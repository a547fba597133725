// What the name of a runtime or driver call tells a reader.
#pragma once

#include <string_view>

namespace rehearse::ingest {

/// Whether a call of the CUDA or HIP runtime or driver starts work on a device.
bool starts_device_work(std::string_view call);

}  // namespace rehearse::ingest
