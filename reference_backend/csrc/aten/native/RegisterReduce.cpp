// Registration of the reductions and softmax: which kernel PyTorch's dispatcher calls for which
// overload.
#include <ATen/core/Tensor.h>
#include <ATen/ops/all_native.h>
#include <ATen/ops/amax_native.h>
#include <ATen/ops/amin_native.h>
#include <ATen/ops/any_native.h>
#include <ATen/ops/max_native.h>
#include <ATen/ops/mean_native.h>
#include <ATen/ops/min_native.h>
#include <ATen/ops/nansum_native.h>
#include <ATen/ops/prod_native.h>
#include <ATen/ops/sum_native.h>
#include <torch/library.h>

#include "aten/native/ArgReduce.h"
#include "aten/native/Softmax.h"
#include "aten/native/Structured.h"

namespace torch_accel {
namespace {

namespace native = at::native;

using UnaryFn = at::Tensor (*)(const at::Tensor&);

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("sum.dim_IntList", functional<native::structured_sum_out>);
  m.impl("sum.IntList_out", out<native::structured_sum_out>);
  m.impl("nansum", &native::nansum);
  m.impl("nansum.out", &native::nansum_out);
  m.impl("mean.dim", functional<native::structured_mean_out>);
  m.impl("mean.out", out<native::structured_mean_out>);
  m.impl("prod", &native::prod);
  m.impl("prod.dim_int", functional<native::structured_prod_out>);
  m.impl("prod.int_out", out<native::structured_prod_out>);
  m.impl("amax", functional<native::structured_amax_out>);
  m.impl("amax.out", out<native::structured_amax_out>);
  m.impl("amin", functional<native::structured_amin_out>);
  m.impl("amin.out", out<native::structured_amin_out>);
  m.impl("all", functional<native::structured_all_all_out>);
  m.impl("all.all_out", out<native::structured_all_all_out>);
  m.impl("all.dim", functional<native::structured_all_out>);
  m.impl("all.out", out<native::structured_all_out>);
  m.impl("all.dims", functional<native::structured_all_dims_out>);
  m.impl("all.dims_out", out<native::structured_all_dims_out>);
  m.impl("any", functional<native::structured_any_all_out>);
  m.impl("any.all_out", out<native::structured_any_all_out>);
  m.impl("any.dim", functional<native::structured_any_out>);
  m.impl("any.out", out<native::structured_any_out>);
  m.impl("any.dims", functional<native::structured_any_dims_out>);
  m.impl("any.dims_out", out<native::structured_any_dims_out>);
  m.impl("max", static_cast<UnaryFn>(&native::max));
  m.impl("max.unary_out", &native::max_unary_out);
  m.impl("max.dim", functional2<native::structured_max_out>);
  m.impl("max.dim_max", out2<native::structured_max_out>);
  m.impl("min", static_cast<UnaryFn>(&native::min));
  m.impl("min.unary_out", &native::min_unary_out);
  m.impl("min.dim", functional2<native::structured_min_out>);
  m.impl("min.dim_min", out2<native::structured_min_out>);
  m.impl("argmax", functional<ArgmaxOut>);
  m.impl("argmax.out", out<ArgmaxOut>);
  m.impl("argmin", functional<ArgminOut>);
  m.impl("argmin.out", out<ArgminOut>);

  m.impl("_softmax", functional<SoftmaxOut>);
  m.impl("_softmax.out", out<SoftmaxOut>);
  m.impl("_log_softmax", functional<LogSoftmaxOut>);
  m.impl("_log_softmax.out", out<LogSoftmaxOut>);
  m.impl("_softmax_backward_data", functional<SoftmaxBackwardOut>);
  m.impl("_softmax_backward_data.out", out<SoftmaxBackwardOut>);
  m.impl("_log_softmax_backward_data", functional<LogSoftmaxBackwardOut>);
  m.impl("_log_softmax_backward_data.out", out<LogSoftmaxBackwardOut>);
}

}  // namespace
}  // namespace torch_accel
