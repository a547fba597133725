// Families of convolutional networks whose members differ in a few numbers, as pieces of a ConvNet.
// Each fails where the stages are missing or too many.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/workload/convnet.h"

namespace rehearse::workload {

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

}  // namespace rehearse::workload
