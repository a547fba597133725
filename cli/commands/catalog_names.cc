#include "cli/commands/catalog_names.h"

#include <set>
#include <string>

#include "cost/catalog.h"
#include "sim/cluster/catalog.h"

namespace rehearse::cli {
namespace {

template <class Rows, class Row>
std::vector<std::string_view> names_of(const Rows& rows, std::string Row::*name) {
  std::vector<std::string_view> names;
  std::set<std::string_view> seen;
  for (const Row& row : rows)
    if (seen.insert(row.*name).second) names.push_back(row.*name);
  return names;
}

}  // namespace

std::vector<std::string_view> gpu_names() { return names_of(cluster::gpus(), &cluster::Gpu::name); }

std::vector<std::string_view> instance_names() {
  return names_of(cluster::instances(), &cluster::Instance::name);
}

std::vector<std::string_view> device_names() {
  std::vector<std::string_view> names = gpu_names();
  for (const std::string_view instance : instance_names()) names.push_back(instance);
  return names;
}

std::vector<std::string_view> mig_profile_names() {
  return names_of(cluster::mig_profiles(), &cluster::MigProfile::name);
}

std::vector<std::string_view> provider_names() {
  return names_of(cost::instance_prices(), &cost::InstancePrice::provider);
}

std::vector<std::string_view> region_names() {
  return names_of(cost::instance_prices(), &cost::InstancePrice::region);
}

}  // namespace rehearse::cli
