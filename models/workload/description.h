// The description of a model, without its implementation: the result of reading files and names of
// the zoo.
#pragma once

#include <string>
#include <variant>

#include "models/workload/conv_families.h"
#include "models/workload/convnet.h"
#include "models/workload/dlrm.h"
#include "models/workload/swin.h"
#include "models/workload/transformer.h"
#include "sim/base/yaml.h"

namespace rehearse::workload {

using Description = std::variant<Transformer, Swin, Dlrm, ResNet, Vgg, DenseNet, ConvNet>;
/// Values of `kind` in a file, in the order of Description.
inline constexpr std::string_view kDescriptionKinds[] = {
    "transformer", "swin", "dlrm", "resnet", "vgg", "densenet", "convnet"};

Description empty_description(std::size_t kind);

/// Sets the values in the mapping and keeps the rest (docs/formats/model.md). Wrong values are
/// recorded in the map's file; the caller finds unknown keys.
void read_description(const YamlMap& map, Description& description);

/// The pieces of a convolutional network, from the list at `key`.
std::vector<Piece> read_pieces(const YamlMap& map, std::string_view key);

void set_name(Description& description, std::string name);

/// Fails as transformer(), swin(), dlrm() and convnet() do.
Result<Workload> workload_of(const Description& description, const Implementation& how);

}  // namespace rehearse::workload
