// Sizes of tensors, from the texts that recordings give for shapes and types.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace rehearse::trace {

/// Nothing if a factor is absent or the product exceeds 64 bits.
std::optional<std::uint64_t> product(std::optional<std::uint64_t> a,
                                     std::optional<std::uint64_t> b);

/// Bytes of one element of a type as PyTorch and NCCL name it ("Float", "c10::BFloat16", "int8",
/// "Tensor(float)"); nothing for an unknown name.
std::optional<std::uint64_t> element_bytes(std::string_view dtype);

/// The number of elements of a shape such as "[32, 3, 224]": the product, 1 for "[]". Nothing if
/// the text is not a shape or the product exceeds 64 bits.
std::optional<std::uint64_t> shape_elements(std::string_view shape);

/// Bytes of all tensors among inputs or outputs. Shapes "[[6144], [], [[112], [8]]]" are paired
/// with types as Kineto writes them, ["float", "Scalar", ""], or as execution traces do,
/// ["Tensor(float)", "Int", "GenericList[Tensor(float),Tensor(long int)]"]. Only tensors count;
/// nothing without tensors, or if the size of one is unknown.
std::optional<std::uint64_t> tensor_bytes(std::string_view shapes, std::string_view types);

/// The same shapes with one spacing, "[[32, 3], []]", so that equal values are equal texts however
/// the writer of the recording placed its whitespace.
std::string evenly_spaced(std::string_view shapes);

}  // namespace rehearse::trace
