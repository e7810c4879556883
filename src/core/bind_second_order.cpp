#include "bind.hpp"

namespace KS_MODULE {

void bind_second_order(nb::module_&) {}

}  // namespace KS_MODULE
