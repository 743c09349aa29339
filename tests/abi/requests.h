// Programs of the public event interface; the same sources are unit tests on kernel threads (tests/unit).
#pragma once

#include <sched.h>
#include <semaphore.h>
#include <upcall/event.h>

#include "abi.h"

using namespace upcall::test;  // NOLINT
