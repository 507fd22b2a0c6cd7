"""Wrong schemes that certificates once called right, each with the claims of the scheme it imitates."""

from fluxforge.scheme import Ghost, Hop, Scheme, SchemeBuilder
from fluxforge.scheme.reference import BUILT_IN

FLUX = "alpha*A/delta*(T_N - T_P)"
UPDATE = "T + dt/V*z + dt*S"
CLAIMS = BUILT_IN["euler"].claims


def one_stage(flux: str, update: str = UPDATE) -> Scheme:
    return SchemeBuilder().stage({"z": flux}, {"T_new": update}).build("decoy", claims=CLAIMS)


def ignored_wall() -> Scheme:
    return (
        SchemeBuilder()
        .stage({}, {"copy": (Ghost.ZERO, "T")})
        .stage({"z": "alpha*A/delta*(copy_N - copy_P)"}, {"T_new": UPDATE})
        .build("decoy", claims=CLAIMS)
    )


def half_step(share: str) -> Scheme:
    return (
        SchemeBuilder()
        .stage({"z": FLUX}, {"half": f"T + {share}*dt/V*z + {share}*dt*S"})
        .stage({"y": "alpha*A/delta*(half_N - half_P)"}, {"T_new": "T + dt/V*y + dt*S"})
        .build("decoy", claims=BUILT_IN["midpoint"].claims)
    )


def ring(message: str) -> Scheme:
    return SchemeBuilder().stage({"z": (Hop.RING, message)}, {"T_new": UPDATE}).build("decoy")


DECOYS = {
    "alpha forgotten": one_stage("A/delta*(T_N - T_P)"),
    "wall ignored": ignored_wall(),
    "exponentials": one_stage("alpha*A/delta*(exp(T_N) - exp(T_P))"),
    "anisotropic": one_stage(f"{FLUX}*(13/10*n_x**2 + 7/10*n_y**2)"),
    "delta over A": one_stage("alpha*delta/A*(T_N - T_P)"),
    "half step 0.50001": half_step("0.50001"),
    "extra for negative T": one_stage(FLUX, f"{UPDATE} + 0.1*(abs(T) - T)"),
    "drift": one_stage(f"{FLUX} + 0.000001*A*n_x*(T_N + T_P)/2"),
    # Exact on squares of side A for sin πx sin πy, whose discrete eigenvalue it divides out.
    "tuned to sines": one_stage(f"{FLUX}*(pi*A/2)**2/sin(pi*A/2)**2"),
    "no Neumann flux": one_stage(f"chi*{FLUX}"),
    "homogeneous": one_stage("alpha*A/delta*(abs(T_N) - abs(T_P))"),
}
