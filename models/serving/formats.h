// Which formats of weights and cache a server has kernels for, by the compute capability of a
// device.
#pragma once

#include <string_view>

#include "models/serving/served_model.h"
#include "models/serving/server.h"
#include "sim/base/result.h"
#include "sim/cluster/catalog.h"

namespace rehearse::serving {

/// Fails where the server does not start with these formats on the device, and names the weights
/// that it runs there. Weights that a device cannot multiply are widened by Marlin kernels, which
/// need a capability of their own. Sources: the tables of supported hardware of vLLM 0.9, 0.14 and
/// 0.32, the least capabilities in the sources of SGLang 0.5, and the support matrix of
/// TensorRT-LLM 0.18 and 1.0.
Status check_formats(Framework framework, std::string_view version, const Precision& precision,
                     const cluster::Gpu& gpu);

}  // namespace rehearse::serving
