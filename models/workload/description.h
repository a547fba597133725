// The description of a model, without its implementation: the result of reading files and names of
// the zoo. Transformers and convolutional networks have headers of their own.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "models/workload/convnet.h"
#include "models/workload/transformer.h"
#include "sim/base/yaml.h"

namespace rehearse::workload {

/// Swin transformers (Liu et al., 2021): stages of transformer blocks whose attention stays within
/// windows, patches merged four to one between them.
struct Swin {
  std::string name;
  std::uint32_t hidden = 96;  ///< of the first stage; each has twice that of the previous one
  std::vector<std::uint32_t> blocks = {};  ///< by stage
  std::vector<std::uint32_t> heads = {};   ///< by stage
  std::uint32_t window = 7;                ///< positions along each side
  std::uint32_t patch = 4;                 ///< pixels along each side
  std::uint32_t image = 224;
  std::uint32_t classes = 1000;
};

/// For one image. Fails where stages and heads differ in number, or windows do not fit.
Result<Workload> swin(const Swin& model, const Implementation& how);

/// Recommendation models (DLRM, Naumov et al., 2019): embedding tables, a network for dense inputs,
/// products of all pairs, a network on top.
struct Dlrm {
  std::string name;
  std::uint32_t dense = 13;                ///< inputs that are numbers
  std::vector<double> rows = {};           ///< rows of each table
  std::uint32_t embedding_size = 0;        ///< common to all tables
  double lookups = 1;                      ///< per table and sample; summed if more than one
  std::vector<std::uint32_t> bottom = {};  ///< widths of the network of dense inputs
  std::vector<std::uint32_t> top = {};     ///< widths of the network on top
  /// Low-rank cross layers on the concatenation of all features (DCNv2), instead of pairs; 0:
  /// pairs.
  std::uint32_t cross_layers = 0;
  std::uint32_t cross_rank = 0;
};

/// For one sample. Tables count as experts: they are divided over data-parallel ranks, their rows
/// are exchanged, and their gradients are sparse. Layers: "tables", "bottom", "interaction", "top".
/// Fails where dimensions are missing or the bottom network does not end in the embedding's size.
Result<Workload> dlrm(const Dlrm& model, const Implementation& how);

// --- Families of convolutional networks whose members differ in a few numbers, as pieces of a ConvNet.
// Each fails where the stages are missing or too many.

/// He et al., 2015, with the stride of bottlenecks in their 3 × 3 convolution (v1.5); ResNeXt by
/// `groups`, wide ResNets by `width_per_group`.
struct ResNet {
  std::string name;
  std::vector<std::uint32_t> blocks;  ///< by stage
  bool bottleneck = true;
  std::uint32_t groups = 1;
  std::uint32_t width_per_group = 64;
  std::uint32_t image = 224;
  std::uint32_t classes = 1000;
};
Result<ConvNet> convnet_of(const ResNet& net);

/// Simonyan and Zisserman, 2014: 3 × 3 convolutions by stage, each stage twice as wide up
/// to 512 channels.
struct Vgg {
  std::string name;
  std::vector<std::uint32_t> convolutions;  ///< by stage
  bool norm = false;
  std::uint32_t image = 224;
  std::uint32_t classes = 1000;
};
Result<ConvNet> convnet_of(const Vgg& net);

/// Huang et al., 2016, with bottlenecks of four times the growth and transitions that halve.
struct DenseNet {
  std::string name;
  std::vector<std::uint32_t> blocks;  ///< layers by block
  std::uint32_t growth = 32;
  std::uint32_t initial = 64;  ///< channels of the first convolution
  std::uint32_t image = 224;
  std::uint32_t classes = 1000;
};
Result<ConvNet> convnet_of(const DenseNet& net);

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
