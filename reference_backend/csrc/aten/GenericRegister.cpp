// Registers the generic kernel, operator by operator, for the names in generic_ops.txt.
#include <torch/library.h>

#include <algorithm>
#include <map>

#include "aten/Generic.h"
#include "aten/GenericCall.h"

namespace torch_accel {
namespace generic {
namespace {

struct Listed {
  const char* name;  // "add.out"
  Source source;
};

constexpr Listed kListed[] = {
#include "aten/generated/generic_ops.inc"
};

// Written in place by optimisers with a value that changes at each step, and whose shapes it cannot
// change: their Scalar arguments stay out of the key.
constexpr const char* kScalarsOfNoShape[] = {
    "add", "sub", "mul", "div", "addcmul", "addcdiv", "lerp", "rsub", "_fused_", "clamp", "fill"};

ArgumentKind kindOf(const c10::Argument& argument) {
  const c10::TypePtr& type = argument.real_type();
  const auto isTensor = [](const c10::TypePtr& t) {
    return t->kind() == c10::TypeKind::TensorType ||
           (t->kind() == c10::TypeKind::OptionalType &&
            t->castRaw<c10::OptionalType>()->getElementType()->kind() == c10::TypeKind::TensorType);
  };
  if (isTensor(type)) return ArgumentKind::kTensor;
  c10::TypePtr inner = type;
  if (type->kind() == c10::TypeKind::OptionalType) {
    inner = type->castRaw<c10::OptionalType>()->getElementType();
  }
  if (inner->kind() == c10::TypeKind::GeneratorType) return ArgumentKind::kGenerator;
  if (inner->kind() == c10::TypeKind::ListType) {
    const c10::TypePtr item = inner->castRaw<c10::ListType>()->getElementType();
    if (item->kind() == c10::TypeKind::TensorType) return ArgumentKind::kTensorList;
    if (isTensor(item)) return ArgumentKind::kOptionalTensorList;
  }
  return ArgumentKind::kOther;
}

std::string baseName(const std::string& name) {  // "aten::add_.Tensor" -> "aten::add"
  std::string base = name.substr(0, name.find('.'));
  if (base.back() == '_' && base.compare(base.size() - 2, 2, "__") != 0) base.pop_back();
  return base;
}

// True when `out_schema` is `schema` with out= arguments added: the same arguments in the same
// order.
bool isOutVariant(const c10::FunctionSchema& schema, const c10::FunctionSchema& out_schema) {
  const auto& a = schema.arguments();
  const auto& b = out_schema.arguments();
  if (a.size() + schema.returns().size() != b.size()) return false;
  for (size_t i = 0; i < b.size(); ++i) {
    if (b[i].is_out() != (i >= a.size())) return false;
    if (i < a.size() && (a[i].name() != b[i].name() || *a[i].type() != *b[i].type())) return false;
  }
  return true;
}

// What the CPU kernel of convolution refuses and its shape function lets pass. The message is the
// kernel's: that is asked when this raises.
void checkConvolution(const ParsedCall&, const Stack& stack) {
  // (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)
  const c10::IValue* last = &stack.back();
  const auto allAtLeast = [](const c10::IValue& list, int64_t least) {
    const auto values = list.toIntVector();
    return std::all_of(values.begin(), values.end(), [&](int64_t v) { return v >= least; });
  };
  TORCH_CHECK(allAtLeast(last[-5], 1) && allAtLeast(last[-4], 0) && allAtLeast(last[-3], 1),
              "stride, padding or dilation of a convolution out of range");
}

// All records, in the order of their names. Filled once, at import.
std::map<std::string, std::unique_ptr<OpRecord>>& records() {
  static auto* all = new std::map<std::string, std::unique_ptr<OpRecord>>;  // outlives the workers
  return *all;
}

bool hasCompositeShape(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeExplicitAutogradNonFunctional);
}

}  // namespace

OpRecord::OpRecord(const c10::OperatorHandle& handle, Source source)
    : op(handle), name(c10::toString(handle.operator_name())), source(source) {
  const c10::FunctionSchema& schema = op.schema();
  for (const c10::Argument& argument : schema.arguments()) {
    ArgumentTraits traits;
    traits.kind = kindOf(argument);
    traits.written = argument.alias_info() && argument.alias_info()->isWrite();
    traits.out = argument.is_out();
    has_out |= traits.out;
    functional &= !traits.written;
    if (traits.kind == ArgumentKind::kGenerator) generator = static_cast<int>(arguments.size());
    if (traits.kind == ArgumentKind::kOptionalTensorList) host_indices = true;
    arguments.push_back(traits);
  }
  for (const c10::Argument& result : schema.returns()) {
    int found = -1;
    for (size_t i = 0; i < arguments.size() && found < 0; ++i) {
      const auto* alias = schema.arguments()[i].alias_info();
      if (arguments[i].written && result.alias_info() && alias &&
          alias->beforeSets() == result.alias_info()->beforeSets()) {
        found = static_cast<int>(i);
      }
    }
    return_argument.push_back(found);
  }
  if (name == "aten::convolution") check = &checkConvolution;
  const std::string base = baseName(name).substr(sizeof("aten::") - 1);
  for (const char* prefix : kScalarsOfNoShape) {
    const std::string_view p(prefix);
    if (p.back() == '_' ? base.rfind(p, 0) == 0 : base == p) scalars_in_key = false;
  }
  // The line of the dispatcher's table that serves the Meta key names a source file.
  const std::string table = op.dumpState();
  const size_t line = table.find("\nMeta: ");
  if (line != std::string::npos) {
    const size_t end = table.find('\n', line + 1);
    python_meta = table.substr(line, end - line).find(".py:") != std::string::npos;
  }
}

}  // namespace generic

void registerGenericOps() {
  using generic::records;
  TORCH_CHECK(records().empty(), "the generic operators are registered already");
  auto& dispatcher = c10::Dispatcher::singleton();
  // A structured operator whose out= variant is written by hand is served by torch's composite
  // kernel, which calls that; the generic kernel must not shadow it.
  std::multimap<std::string, c10::OperatorHandle> outs;
  for (const auto& listed : generic::kListed) {
    const std::string name = listed.name;
    const size_t dot = name.find('.');
    const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
    const auto op = dispatcher.findSchema({"aten::" + name.substr(0, dot), overload});
    TORCH_CHECK(op, "generic_ops.txt: this torch has no operator aten::", name);
    if (!op->schema().arguments().empty() && op->schema().arguments().back().is_out()) {
      outs.emplace(generic::baseName("aten::" + name), *op);
    }
  }
  const auto outVariant = [&](const c10::OperatorHandle& op) -> std::optional<c10::OperatorHandle> {
    const std::string base = generic::baseName(c10::toString(op.operator_name()));
    const auto [first, last] = outs.equal_range(base);
    for (auto it = first; it != last; ++it) {
      if (generic::isOutVariant(op.schema(), it->second.schema())) return it->second;
    }
    return std::nullopt;
  };
  std::vector<std::pair<generic::OpRecord*, c10::OperatorHandle>> structured;
  for (const auto& listed : generic::kListed) {
    const std::string name = listed.name;
    const size_t dot = name.find('.');
    const std::string overload = dot == std::string::npos ? "" : name.substr(dot + 1);
    const auto op = *dispatcher.findSchema({"aten::" + name.substr(0, dot), overload});
    if (op.hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) continue;
    const auto out = generic::hasCompositeShape(op) ? outVariant(op) : std::nullopt;
    if (out && out->hasKernelForDispatchKey(c10::DispatchKey::PrivateUse1)) continue;
    auto record = std::make_unique<generic::OpRecord>(op, listed.source);
    if (out && record->functional) structured.emplace_back(record.get(), *out);
    records().emplace(record->name, std::move(record));
  }
  for (auto& [record, out] : structured) {
    record->out_variant = records().at(c10::toString(out.operator_name())).get();
  }
  static auto* library = new torch::Library(torch::Library::IMPL, "aten",
                                            c10::DispatchKey::PrivateUse1, __FILE__, __LINE__);
  for (const auto& [name, record] : records()) {
    library->impl(name.substr(sizeof("aten::") - 1).c_str(),
                  torch::CppFunction::makeFromBoxedFunctor(
                      std::make_unique<generic::GenericFunctor>(record.get())));
  }
}

std::vector<std::string> fallbackOps() {
  std::vector<std::string> names;
  for (const auto& [name, record] : generic::records()) {
    if (record->source == generic::Source::kFallback) names.push_back(name);
  }
  return names;
}

std::vector<std::string> genericOps() {
  std::vector<std::string> names;
  for (const auto& [name, record] : generic::records()) {
    if (record->source != generic::Source::kFallback) names.push_back(name);
  }
  return names;
}

std::unordered_map<std::string, uint64_t> fallbackCalls() {
  std::unordered_map<std::string, uint64_t> calls;
  for (const auto& [name, record] : generic::records()) {
    if (const uint64_t n = record->fallback_calls.load()) calls.emplace(name, n);
  }
  return calls;
}

}  // namespace torch_accel
