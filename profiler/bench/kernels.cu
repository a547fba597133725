// Our own kernels for elementwise work, which `bench-gpu` measures, in the language that NVRTC
// compiles. They are simple: 16 bytes per load, one block per row, each row read twice. The format of
// operands is defined by the program: ELEMENT_bf16, ELEMENT_fp16 or ELEMENT_fp32.
#if defined(ELEMENT_bf16)
// The upper half of a float, rounded to even.
typedef unsigned short Element;
__device__ float widen(Element e) { return __uint_as_float((unsigned)e << 16); }
__device__ Element narrow(float f) {
  unsigned bits = __float_as_uint(f);
  return (Element)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}
#elif defined(ELEMENT_fp16)
typedef unsigned short Element;
__device__ float widen(Element e) {
  float f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(e));
  return f;
}
__device__ Element narrow(float f) {
  Element e;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(e) : "f"(f));
  return e;
}
#else
typedef float Element;
__device__ float widen(Element e) { return e; }
__device__ Element narrow(float f) { return f; }
#endif

typedef unsigned long long Count;
enum { kWidth = 16 / sizeof(Element), kThreads = 256 };
struct alignas(16) Pack { Element e[kWidth]; };

__device__ float curve(float x) { return x / (1.0f + __expf(-1.702f * x)); }

template <bool two>
__device__ void elementwise(const Element* a, const Element* b, Element* y, Count n) {
  const Count packs = n / kWidth, step = (Count)gridDim.x * blockDim.x;
  const Count self = (Count)blockIdx.x * blockDim.x + threadIdx.x;
  for (Count i = self; i < packs; i += step) {
    const Pack p = ((const Pack*)a)[i];
    Pack q = p, r;
    if (two) q = ((const Pack*)b)[i];
    for (int j = 0; j < kWidth; ++j)
      r.e[j] = narrow(two ? widen(p.e[j]) + widen(q.e[j]) : curve(widen(p.e[j])));
    ((Pack*)y)[i] = r;
  }
  for (Count i = packs * kWidth + self; i < n; i += step)
    y[i] = narrow(two ? widen(a[i]) + widen(b[i]) : curve(widen(a[i])));
}
extern "C" __global__ void rehearse_elementwise_1(const Element* a, const Element* b, Element* y, Count n) {
  elementwise<false>(a, b, y, n);
}
extern "C" __global__ void rehearse_elementwise_2(const Element* a, const Element* b, Element* y, Count n) {
  elementwise<true>(a, b, y, n);
}

// Calls f(index, value) for each element of a row that falls to this thread.
template <class F>
__device__ void each(const Element* row, Count width, F f) {
  if (width % kWidth == 0) {
    for (Count i = threadIdx.x; i < width / kWidth; i += kThreads) {
      const Pack p = ((const Pack*)row)[i];
      for (int j = 0; j < kWidth; ++j) f(i * kWidth + j, widen(p.e[j]));
    }
  } else {
    for (Count i = threadIdx.x; i < width; i += kThreads) f(i, widen(row[i]));
  }
}

// Writes f(value) of each element of a row.
template <class F>
__device__ void map(const Element* row, Element* out, Count width, F f) {
  if (width % kWidth == 0) {
    for (Count i = threadIdx.x; i < width / kWidth; i += kThreads) {
      const Pack p = ((const Pack*)row)[i];
      Pack r;
      for (int j = 0; j < kWidth; ++j) r.e[j] = narrow(f(widen(p.e[j])));
      ((Pack*)out)[i] = r;
    }
  } else {
    for (Count i = threadIdx.x; i < width; i += kThreads) out[i] = narrow(f(widen(row[i])));
  }
}

// Over a block; every thread gets it.
template <class F>
__device__ float fold(float value, F f) {
  __shared__ float parts[kThreads / 32];
  for (int distance = 16; distance > 0; distance /= 2)
    value = f(value, __shfl_xor_sync(0xffffffffu, value, distance));
  __syncthreads();
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  value = parts[0];
  for (int i = 1; i < kThreads / 32; ++i) value = f(value, parts[i]);
  return value;
}
__device__ float sum(float value) {
  return fold(value, [](float a, float b) { return a + b; });
}

extern "C" __global__ void rehearse_reduction(const Element* x, Element* y, Count rows, Count width) {
  for (Count row = blockIdx.x; row < rows; row += gridDim.x) {
    float total = 0;
    each(x + row * width, width, [&](Count, float v) { total += v; });
    total = sum(total);
    if (threadIdx.x == 0) y[row] = narrow(total);
  }
}

extern "C" __global__ void rehearse_norm(const Element* x, Element* y, Count rows, Count width) {
  for (Count row = blockIdx.x; row < rows; row += gridDim.x) {
    float total = 0, squares = 0;
    each(x + row * width, width, [&](Count, float v) {
      total += v;
      squares += v * v;
    });
    const float mean = sum(total) / width;
    const float scale = rsqrtf(fmaxf(sum(squares) / width - mean * mean, 0.0f) + 1e-5f);
    map(x + row * width, y + row * width, width, [&](float v) { return (v - mean) * scale; });
  }
}

extern "C" __global__ void rehearse_softmax(const Element* x, Element* y, Count rows, Count width) {
  for (Count row = blockIdx.x; row < rows; row += gridDim.x) {
    float most = -3.0e38f, total = 0;
    each(x + row * width, width, [&](Count, float v) {
      const float larger = fmaxf(most, v);
      total = total * __expf(most - larger) + __expf(v - larger);
      most = larger;
    });
    const float all = fold(most, [](float a, float b) { return fmaxf(a, b); });
    const float inverse = 1.0f / sum(total * __expf(most - all));
    map(x + row * width, y + row * width, width,
        [&](float v) { return __expf(v - all) * inverse; });
  }
}
