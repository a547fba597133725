// Names of the catalog, for completion: each once.
#pragma once

#include <string_view>
#include <vector>

namespace rehearse::cli {

std::vector<std::string_view> gpu_names();
std::vector<std::string_view> instance_names();
/// GPUs and instances.
std::vector<std::string_view> device_names();
std::vector<std::string_view> mig_profile_names();
/// Providers and regions of the prices of instances.
std::vector<std::string_view> provider_names();
std::vector<std::string_view> region_names();

}  // namespace rehearse::cli
