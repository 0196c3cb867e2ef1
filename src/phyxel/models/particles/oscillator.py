# mypy: disable-error-code="valid-type,no-untyped-def"
"""The damped oscillator ü + d u̇ + w (u − u₀) = f under an even f, followed over any time t by its exact solution:

    u' = u + b v + a (f − w (u − u₀)),   v' = h v + b (f − w (u − u₀))

b is where a unit velocity leads without forces, h = ḃ the velocity that is left of it, and a = ∫ b where a unit f leads
from rest. With s = d/2, D = s² − w, C = cosh √D t and S = sinh √D t / √D (cos and sin for D < 0):

    b = e^(−st) S,   h = e^(−st) (C − sS),   w a = 1 − e^(−st) (C + sS)        (W96, physics 13.1)

None of the three is worked out in this way as it stands: a is small where t is, w may be 0, e^(−st) and C may be beyond
what a number holds, and the roots may be equal.
"""

from __future__ import annotations

import warp as wp

from phyxel import device as dev

wp.set_module_options(dev.KERNEL_OPTIONS)

TERMS = wp.constant(20)
"""of the series: the last is below 1e-17 of the sum where |z| ≤ 1"""


@wp.func
def faded(r: wp.float64, t: wp.float64) -> wp.float64:
    """∫ e^(−rt) dt = (1 − e^(−rt))/r, t for r = 0. By tanh, which cancels nothing and never overflows."""
    if r * t < wp.float64(1.0e-16):
        return t
    half = wp.tanh(wp.float64(0.5) * r * t)
    return wp.float64(2.0) * half / ((wp.float64(1.0) + half) * r)


@wp.func
def response(d: wp.float64, w: wp.float64, t: wp.float64) -> wp.vec3d:
    """(a [s²], b [s], h) of damping d = c/m [1/s] and stiffness w = K/m [1/s²], both 0 or more, after t [s] (W96,
    physics 13.1)."""
    one = wp.float64(1.0)
    s = wp.float64(0.5) * d
    omega = wp.sqrt(w)
    if d * t + omega * t <= one:
        return _in_series(d * t, w * t * t, t)
    root = wp.sqrt(wp.abs((s - omega) * (s + omega)))
    if s >= omega:
        return _overdamped(s, w, root, t)
    # −expm1(−st) + e^(−st)(1 − cos) − sb: at s = 0 all digits of 1 − cos are there
    fade = wp.exp(-s * t)
    half = wp.sin(wp.float64(0.5) * root * t)
    b = fade * wp.sin(root * t) / root
    wa = s * faded(s, t) + wp.float64(2.0) * fade * half * half - s * b
    return wp.vec3d(wa / w, b, fade * wp.cos(root * t) - s * b)


@wp.func
def _in_series(p: wp.float64, q: wp.float64, t: wp.float64) -> wp.vec3d:
    """h = Σ c_k, b = t Σ c_k/(k+1), a = t² Σ c_k/((k+1)(k+2)), where k! c_k are the complete symmetric polynomials of
    the roots of z² + p z + q: they need not be real, nor differ."""
    one = wp.float64(1.0)
    before = wp.float64(0.0)
    c = one
    h = one
    b = one
    a = wp.float64(0.5)
    k = one
    for _ in range(TERMS):
        following = -p * c / k
        if k > one:
            following -= q * before / (k * (k - one))
        before = c
        c = following
        h += c
        b += c / (k + one)
        a += c / ((k + one) * (k + wp.float64(2.0)))
        k += one
    return wp.vec3d(t * t * a, t * b, h)


@wp.func
def _overdamped(s: wp.float64, w: wp.float64, root: wp.float64, t: wp.float64) -> wp.vec3d:
    """With e^(−slow t) and e^(−fast t): none of them overflows."""
    fast = s + root
    slow = w / fast
    gone = wp.exp(-fast * t)
    b = wp.exp(-slow * t) * faded(wp.float64(2.0) * root, t)
    a = (faded(slow, t) - faded(fast, t)) / (wp.float64(2.0) * root)
    if fast < wp.float64(2.0) * slow:  # nearly equal roots: these differences would be lost, 1 − g is not
        a = (wp.float64(1.0) - gone - fast * b) / w
    return wp.vec3d(a, b, gone - slow * b)
